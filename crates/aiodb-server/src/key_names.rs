//! Which arguments of a command are keys and channels.

use bytes::Bytes;

use crate::acl::Access;
use crate::number::parse_integer;

/// Which arguments are keys: from `first` to `last` (from the end if negative), each `step` after the other; none if
/// `first` is 0.
#[derive(Clone, Copy)]
pub(crate) struct Keys {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) step: i64,
    /// If not 0, the argument that says how many arguments behind it are keys, too.
    pub(crate) counted_at: usize,
    /// What becomes of them, as Redis's key specifications say it.
    pub(crate) flags: &'static str,
    /// What becomes of all but the first one, if that is something else.
    pub(crate) others: &'static str,
    /// What becomes of them if that depends on the arguments.
    pub(crate) varies: Option<fn(&[Bytes]) -> &'static str>,
}

/// Which arguments are channels that a client must be allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChannelNames {
    None,
    /// The first one.
    First,
    All,
    /// All are patterns of channels.
    Patterns,
}

/// No arguments are keys.
pub(crate) const NO_KEYS: Keys =
    Keys { first: 0, last: 0, step: 0, counted_at: 0, flags: "", others: "", varies: None };

/// The first argument is a key.
pub(crate) const fn one_key(flags: &'static str) -> Keys {
    Keys { first: 1, last: 1, step: 1, flags, ..NO_KEYS }
}

/// All arguments are keys, or each `step`th.
pub(crate) const fn all_keys(step: i64, flags: &'static str) -> Keys {
    Keys { first: 1, last: -1, step, flags, ..NO_KEYS }
}

impl Keys {
    /// The keys among the arguments.
    pub(crate) fn of(self, arguments: &[Bytes]) -> impl Iterator<Item = &Bytes> {
        self.places(arguments).map(move |at| &arguments[at])
    }

    /// Where the keys are among the arguments, and what becomes of each.
    pub(crate) fn uses(self, arguments: &[Bytes]) -> Vec<(usize, Access)> {
        let flags = self.varies.map_or(self.flags, |flags| flags(arguments));
        let others = if self.others.is_empty() { flags } else { self.others };
        let [first, others] = [flags, others].map(Access::of_flags);
        let places = self.places(arguments).enumerate();
        places.map(|(number, at)| (at, if number == 0 { first } else { others })).collect()
    }

    fn places(self, arguments: &[Bytes]) -> impl Iterator<Item = usize> + use<> {
        let last = if self.last < 0 { arguments.len() as i64 + self.last } else { self.last };
        let is_any = self.first > 0 && last >= self.first;
        let range = if is_any { self.first as usize..(last as usize + 1).min(arguments.len()) } else { 0..0 };
        let counted = match self.counted_at {
            0 => 0..0,
            at => {
                let number = arguments.get(at).and_then(|number| parse_integer(number));
                let number = number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
                // Whether there are as many as it says is for the command to say.
                at + 1..at + 1 + number.min(arguments.len().saturating_sub(at + 1))
            }
        };
        range.step_by(self.step.max(1) as usize).chain(counted)
    }
}
