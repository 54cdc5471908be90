//! Patterns of KEYS and SCAN: `*`, `?`, `[a-z]`, `[^a]`, `\` before a character that stands for itself.

/// Whether a text matches a pattern as a whole.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern_at, mut text_at) = (0, 0);
    // Where to go on if the last `*` must take one byte more: only the last one ever needs to.
    let mut again: Option<(usize, usize)> = None;
    loop {
        if pattern.get(pattern_at) == Some(&b'*') {
            pattern_at += 1;
            again = Some((pattern_at, text_at));
            continue;
        }
        let step = match text.get(text_at) {
            Some(byte) if pattern_at < pattern.len() => one(&pattern[pattern_at..], *byte),
            Some(_) => None,
            None if pattern_at == pattern.len() => return true,
            None => return false,
        };
        match (step, &mut again) {
            (Some(length), _) => (pattern_at, text_at) = (pattern_at + length, text_at + 1),
            (None, Some((after_star, taken_to))) => {
                *taken_to += 1;
                (pattern_at, text_at) = (*after_star, *taken_to);
            }
            (None, None) => return false,
        }
    }
}

/// How long the beginning of the pattern is that stands for one byte, if it stands for this one.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', class @ ..] => {
            let (holds, length) = class_holds(class, byte);
            holds.then_some(1 + length)
        }
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [literal, ..] => (*literal == byte).then_some(1),
        [] => None,
    }
}

/// Whether a class, from behind its `[` on, has a byte, and how long it is; one that is not ended goes to the pattern's end.
fn class_holds(class: &[u8], byte: u8) -> (bool, usize) {
    let negated = class.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    loop {
        match class[at..] {
            [b'\\', escaped, ..] => {
                found |= escaped == byte;
                at += 2;
            }
            [b']', ..] => return (found != negated, at + 1),
            [] => return (found != negated, at),
            [from, b'-', to, ..] => {
                found |= (from.min(to)..=from.max(to)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                found |= literal == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
