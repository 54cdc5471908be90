//! Files of users: a line for each, `user NAME RULE...`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use bytes::Bytes;

use super::catalog::Catalog;
use super::rules::{Rules, WrongRules, merged};
use super::selector::{RuleError, has_spaces};

/// Users with their rules, in the order of their names.
pub(super) type Users = BTreeMap<Bytes, Rules>;

/// Reads a file; what is wrong with it, or with its lines, is said in Redis's words.
pub(super) fn read(path: &Path, catalog: &Catalog) -> Result<Users, String> {
    let text = std::fs::read(path).map_err(|cause| {
        let cause = cause.to_string();
        // Without the number of the error.
        let cause = cause.split(" (os error").next().unwrap_or_default();
        format!("Error loading ACLs, opening file '{}': {cause}", path.display())
    })?;
    let (mut users, mut errors) = (Users::new(), String::new());
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let place = format!("{}:{}", path.display(), number + 1);
        errors.push_str(&read_line(&mut users, line.trim_ascii(), &place, catalog));
    }
    if errors.is_empty() {
        return Ok(users);
    }
    Err(errors + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed")
}

/// Adds the user of a line; what is wrong with it.
fn read_line(users: &mut Users, line: &[u8], place: &str, catalog: &Catalog) -> String {
    if line.is_empty() {
        return String::new();
    }
    let words: Vec<Bytes> = line.split(|byte| *byte == b' ').map(Bytes::copy_from_slice).collect();
    let [user, name, rules @ ..] = &words[..] else {
        return format!("{place} should start with user keyword followed by the username. ");
    };
    let shown = String::from_utf8_lossy(name);
    if user != "user" {
        return format!("{place} should start with user keyword followed by the username. ");
    }
    if has_spaces(name) {
        return format!("'{place}: username '{shown}' contains invalid characters. ");
    }
    if users.contains_key(name) {
        let line = place.rsplit(':').next().unwrap_or_default();
        return format!("WARNING: Duplicate user '{shown}' found on line {line}. ");
    }
    let (mut made, mut errors, mut has_other) = (Rules::default(), String::new(), false);
    match merged(rules) {
        Err(WrongRules::Unmatched(_) | WrongRules::Rule(..)) => {
            errors = format!("{place}: Unmatched parenthesis in selector definition.");
        }
        Ok(rules) => {
            for rule in rules {
                match made.apply(rule.trim_ascii(), catalog) {
                    Ok(()) => {}
                    Err(error @ RuleError::UnknownName) => {
                        let rule = String::from_utf8_lossy(&rule);
                        errors.push_str(&format!("{place}: Error in applying operation '{rule}': {error}. "));
                    }
                    // What comes after it may be wrong only because of it. The rule may be a secret.
                    Err(error) if !has_other => {
                        has_other = true;
                        errors.push_str(&format!("{place}: {error}. "));
                    }
                    Err(_) => {}
                }
            }
        }
    }
    users.insert(name.clone(), made);
    errors
}

/// Replaces a file by the lines of users. Either the old one is there after a crash, or the new one.
pub(super) fn write(path: &Path, lines: &[u8]) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(lines)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    std::fs::File::open(dir)?.sync_all()
}
