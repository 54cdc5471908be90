//! A place in a row of tokens, and what can be stepped over from there.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

pub(super) struct Cursor {
    tokens: Vec<TokenTree>,
    at: usize,
}

/// `#[...]` or `#![...]`.
pub(super) struct Attribute {
    /// `#![...]`: of what is around it.
    pub(super) inner: bool,
    /// What is in the brackets.
    pub(super) tokens: TokenStream,
}

/// The words with which something begins that ends with a body or a `;`. Anything else (a field, an arm, an argument)
/// can end with a comma too.
const ITEM_WORDS: [&str; 20] = [
    "async",
    "const",
    "enum",
    "extern",
    "fn",
    "for",
    "if",
    "impl",
    "let",
    "loop",
    "macro_rules",
    "match",
    "mod",
    "static",
    "struct",
    "trait",
    "type",
    "unsafe",
    "use",
    "while",
];

/// Those that have a `;` even after braces.
const SEMICOLON_WORDS: [&str; 5] = ["const", "let", "static", "type", "use"];

impl Cursor {
    pub(super) fn new(tokens: TokenStream) -> Cursor {
        Cursor { tokens: tokens.into_iter().collect(), at: 0 }
    }

    /// The token `ahead` of the next one.
    pub(super) fn peek(&self, ahead: usize) -> Option<&TokenTree> {
        self.tokens.get(self.at + ahead)
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    /// Steps over `::` if it is next, and says whether it was.
    pub(super) fn separator(&mut self) -> bool {
        let found = self.separator_at(0);
        self.at += if found { 2 } else { 0 };
        found
    }

    /// The next token is a name, and a path goes on after it: `name::other`, `name::{`, `name::*`, but not `name::<`.
    pub(super) fn path_follows(&self) -> bool {
        self.separator_at(1)
            && match self.peek(3) {
                Some(TokenTree::Ident(_)) => true,
                Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Brace,
                Some(TokenTree::Punct(_)) => self.is_punct(3, '*'),
                _ => false,
            }
    }

    /// Steps over a path that begins in no module of this crate: what follows a `::` at its start, or a type's.
    pub(super) fn skip_path(&mut self) {
        while self.path_follows() {
            self.at += 3;
        }
        self.advance();
    }

    /// Steps over `as name` if it is next, and returns the name.
    pub(super) fn renamed(&mut self) -> Option<String> {
        if !self.is_word(0, "as") {
            return None;
        }
        self.at += 2;
        self.tokens.get(self.at - 1).map(TokenTree::to_string)
    }

    /// Steps over an attribute if one is next.
    pub(super) fn attribute(&mut self) -> Option<Attribute> {
        if !self.is_punct(0, '#') {
            return None;
        }
        let inner = self.is_punct(1, '!');
        let length = if inner { 3 } else { 2 };
        match self.peek(length - 1) {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
                let tokens = group.stream();
                self.at += length;
                Some(Attribute { inner, tokens })
            }
            _ => None,
        }
    }

    /// Steps over `(crate)` and the like, after `pub`.
    pub(super) fn skip_visibility(&mut self) {
        let Some(TokenTree::Group(group)) = self.peek(0) else { return };
        let inside = Cursor::new(group.stream());
        let scope = inside.is_word(0, "in") || (inside.tokens.len() == 1 && !inside.is_word(0, "Self"));
        if group.delimiter() == Delimiter::Parenthesis && scope {
            self.advance();
        }
    }

    /// Steps over what an attribute belongs to.
    pub(super) fn skip_item(&mut self) {
        while self.attribute().is_some() {}
        if self.is_word(0, "pub") {
            self.advance();
            self.skip_visibility();
        }
        let word = self.peek(0).map(TokenTree::to_string).unwrap_or_default();
        let function = word == "const" && ["async", "extern", "fn", "unsafe"].iter().any(|next| self.is_word(1, next));
        let body_ends = function || !SEMICOLON_WORDS.contains(&word.as_str());
        let comma_ends = !ITEM_WORDS.contains(&word.as_str());
        while let Some(token) = self.peek(0) {
            let ends = match token {
                TokenTree::Punct(punct) => punct.as_char() == ';' || (comma_ends && punct.as_char() == ','),
                TokenTree::Group(group) => body_ends && group.delimiter() == Delimiter::Brace,
                _ => false,
            };
            self.advance();
            if ends {
                return;
            }
        }
    }

    pub(super) fn skip_to_semicolon(&mut self) {
        self.skip_past(';');
    }

    pub(super) fn skip_past_comma(&mut self) {
        self.skip_past(',');
    }

    fn skip_past(&mut self, end: char) {
        while self.peek(0).is_some() && !self.is_punct(0, end) {
            self.advance();
        }
        self.advance();
    }

    fn separator_at(&self, ahead: usize) -> bool {
        self.is_punct(ahead, ':') && self.is_punct(ahead + 1, ':')
    }

    fn is_punct(&self, ahead: usize, character: char) -> bool {
        matches!(self.peek(ahead), Some(TokenTree::Punct(punct)) if punct.as_char() == character)
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek(ahead), Some(TokenTree::Ident(ident)) if ident == word)
    }
}

impl Attribute {
    /// What has this attribute is compiled for tests alone.
    pub(super) fn for_tests(&self) -> bool {
        let cursor = Cursor::new(self.tokens.clone());
        match cursor.peek(1) {
            Some(TokenTree::Group(condition)) if cursor.is_word(0, "cfg") => holds_in_tests_alone(condition.stream()),
            _ => false,
        }
    }
}

/// Whether a condition of `cfg` needs `test`: it is `test`, an `all` with such a part, or an `any` of nothing else.
fn holds_in_tests_alone(condition: TokenStream) -> bool {
    let cursor = Cursor::new(condition);
    let parts = match cursor.peek(1) {
        Some(TokenTree::Group(group)) => parts(group.stream()),
        _ => return cursor.tokens.len() == 1 && cursor.is_word(0, "test"),
    };
    if cursor.is_word(0, "all") {
        parts.into_iter().any(holds_in_tests_alone)
    } else {
        cursor.is_word(0, "any") && !parts.is_empty() && parts.into_iter().all(holds_in_tests_alone)
    }
}

/// The parts between commas.
fn parts(tokens: TokenStream) -> Vec<TokenStream> {
    let mut parts = vec![TokenStream::new()];
    for token in tokens {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => parts.push(TokenStream::new()),
            _ => parts.last_mut().expect("one part at least").extend([token]),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}
