//! The rules of one user: whether it is on, its passwords, and what it may do.

use std::sync::OnceLock;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::catalog::Catalog;
use super::selector::{Attempt, Denial, RuleError, Selector};

/// The SHA-256 of a password. The password itself is kept nowhere.
type Hash = [u8; 32];

/// What a user is and may do.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    pub(crate) is_on: bool,
    /// Whether every password is right.
    pub(crate) needs_no_password: bool,
    /// What is said of RESTORE, which is not there: it is shown as it was set.
    checks_payloads: Option<bool>,
    passwords: Vec<Hash>,
    root: Selector,
    /// Those in brackets.
    others: Vec<Selector>,
    /// All of it as [`Rules::text`] has it, once somebody has asked: it takes a while to find.
    text: OnceLock<Bytes>,
}

/// Rules that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WrongRules {
    /// A bracket is not closed; with the rule that begins with it.
    Unmatched(Bytes),
    Rule(Bytes, RuleError),
}

impl WrongRules {
    /// As Redis says it.
    pub(crate) fn text(&self) -> Bytes {
        match self {
            WrongRules::Unmatched(rule) => {
                [b"Unmatched parenthesis in acl selector starting at '", &rule[..], b"'."].concat().into()
            }
            WrongRules::Rule(rule, error) => {
                let reason = format!("': {error}");
                [b"Error in ACL SETUSER modifier '", &rule[..], reason.as_bytes()].concat().into()
            }
        }
    }
}

impl Rules {
    /// Those of the default user until somebody changes them: with a password, if one is given.
    pub(crate) fn of_default(password: &str, catalog: &Catalog) -> Rules {
        let mut rules = Rules { is_on: true, ..Rules::default() };
        for rule in ["+@all", "~*", "&*"] {
            rules.root.apply(rule.as_bytes(), catalog).expect("these are rules");
        }
        rules.set_password(password);
        rules
    }

    /// Replaces all passwords by one, or by none if it is empty.
    pub(crate) fn set_password(&mut self, password: &str) {
        self.text = OnceLock::new();
        self.needs_no_password = password.is_empty();
        self.passwords = if password.is_empty() { Vec::new() } else { vec![hash(password.as_bytes())] };
    }

    /// Changes the rules, or nothing if one of the changes cannot be.
    pub(crate) fn change(&mut self, changes: &[Bytes], catalog: &Catalog) -> Result<(), WrongRules> {
        let mut changed = self.clone();
        for rule in merged(changes)? {
            changed.apply(&rule, catalog).map_err(|error| WrongRules::Rule(rule, error))?;
        }
        *self = changed;
        Ok(())
    }

    /// Changes the rules by one.
    pub(super) fn apply(&mut self, rule: &[u8], catalog: &Catalog) -> Result<(), RuleError> {
        self.text = OnceLock::new();
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            [] => {}
            _ if is("on") => self.is_on = true,
            _ if is("off") => self.is_on = false,
            _ if is("skip-sanitize-payload") => self.checks_payloads = Some(false),
            _ if is("sanitize-payload") => self.checks_payloads = Some(true),
            _ if is("nopass") => self.set_password(""),
            _ if is("resetpass") => (self.needs_no_password, self.passwords) = (false, Vec::new()),
            _ if is("clearselectors") => self.others.clear(),
            _ if is("reset") => *self = Rules { checks_payloads: Some(true), ..Rules::default() },
            [b'>', password @ ..] => self.add_password(hash(password)),
            [b'#', digits @ ..] => self.add_password(parse_hash(digits)?),
            [b'<', password @ ..] => self.remove_password(hash(password))?,
            [b'!', digits @ ..] => self.remove_password(parse_hash(digits)?)?,
            [b'(', inner @ .., b')'] => {
                let mut selector = Selector::default();
                for rule in inner.split(u8::is_ascii_whitespace).filter(|rule| !rule.is_empty()) {
                    selector.apply(rule, catalog)?;
                }
                self.others.push(selector);
            }
            rule => self.root.apply(rule, catalog)?,
        }
        Ok(())
    }

    fn add_password(&mut self, password: Hash) {
        if !self.passwords.contains(&password) {
            self.passwords.push(password);
        }
        self.needs_no_password = false;
    }

    fn remove_password(&mut self, password: Hash) -> Result<(), RuleError> {
        let at = self.passwords.iter().position(|other| *other == password).ok_or(RuleError::NoSuchPassword)?;
        self.passwords.remove(at);
        Ok(())
    }

    /// Whether a client with this password may be this user. The time that it takes says nothing of the passwords.
    pub(super) fn admits(&self, password: &[u8]) -> bool {
        let given = hash(password);
        let is_right = self.passwords.iter().fold(false, |is_right, right| is_right | bool::from(right.ct_eq(&given)));
        self.is_on && (self.needs_no_password || is_right)
    }

    /// The selector of the user itself, and then those in brackets.
    pub(crate) fn selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.others)
    }

    /// Whether everything is allowed.
    pub(super) fn allow_all(&self) -> bool {
        self.selectors().any(Selector::allows_all)
    }

    /// Whether one of the selectors allows an attempt, or else what is not allowed of it.
    pub(crate) fn check(&self, attempt: &Attempt<'_>) -> Result<(), Denial> {
        let mut denial = Denial::Command;
        for selector in self.selectors() {
            match selector.check(attempt) {
                Ok(()) => return Ok(()),
                Err(other) => denial = denial.max(other),
            }
        }
        Err(denial)
    }

    /// Whether some selector allows to listen to a channel or a pattern.
    pub(crate) fn allow_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.selectors().any(|selector| selector.allows_channel(channel, is_pattern))
    }

    /// The words for what the user is.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let words = [
            (self.is_on, "on"),
            (!self.is_on, "off"),
            (self.needs_no_password, "nopass"),
            (self.checks_payloads == Some(false), "skip-sanitize-payload"),
            (self.checks_payloads == Some(true), "sanitize-payload"),
        ];
        words.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect()
    }

    /// The passwords' SHA-256 in hexadecimal.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = String> {
        self.passwords.iter().map(|password| in_hexadecimal(password))
    }

    /// All of it as rules that make the same user again.
    pub(crate) fn text(&self, catalog: &Catalog) -> Bytes {
        self.text.get_or_init(|| self.described(catalog)).clone()
    }

    fn described(&self, catalog: &Catalog) -> Bytes {
        let mut rules: Vec<Bytes> = self.flags().into_iter().map(Bytes::from).collect();
        rules.extend(self.hashes().map(|hash| Bytes::from(format!("#{hash}"))));
        rules.push(self.root.rules(catalog));
        let in_brackets = |selector: &Selector| Bytes::from([b"(", &selector.rules(catalog)[..], b")"].concat());
        rules.extend(self.others.iter().map(in_brackets));
        rules.join(&b' ').into()
    }
}

/// Rules of which those in brackets are one each, whatever spaces they have.
pub(super) fn merged(rules: &[Bytes]) -> Result<Vec<Bytes>, WrongRules> {
    let mut merged = Vec::with_capacity(rules.len());
    // The rule that opened a bracket, and all of it so far.
    let mut open: Option<(&Bytes, Vec<u8>)> = None;
    for rule in rules {
        if rule.starts_with(b"(") && !rule.ends_with(b")") {
            open = Some((rule, rule.to_vec()));
        } else if let Some((first, mut text)) = open.take() {
            text.extend([b" ", &rule[..]].concat());
            match rule.ends_with(b")") {
                true => merged.push(text.into()),
                false => open = Some((first, text)),
            }
        } else {
            merged.push(rule.clone());
        }
    }
    match open {
        None => Ok(merged),
        Some((first, _)) => Err(WrongRules::Unmatched(first.clone())),
    }
}

fn hash(password: &[u8]) -> Hash {
    Sha256::digest(password).into()
}

fn in_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse_hash(digits: &[u8]) -> Result<Hash, RuleError> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 2 * size_of::<Hash>() || !digits.iter().all(is_digit) {
        return Err(RuleError::NotAHash);
    }
    let value = |digit: u8| if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 };
    let mut hash = Hash::default();
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0]) << 4 | value(pair[1]);
    }
    Ok(hash)
}
