//! Users, as Redis's ACL has them: who may connect, and run which commands with which keys and channels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use bytes::Bytes;

use crate::config::{Config, ConfigError};

mod catalog;
mod denials;
mod file;
mod rules;
mod selector;

pub(crate) use self::catalog::{CATEGORIES, Catalog, category_of};
pub(crate) use self::denials::{Denials, Denied, Place};
pub(crate) use self::rules::{Rules, WrongRules};
pub(crate) use self::selector::{Access, Attempt, Denial, Selector, has_spaces};

/// The user of those who do not say who they are.
const DEFAULT: &[u8] = b"default";

/// A user. Its connections see each change of its rules at once.
pub(crate) struct User {
    pub(crate) name: Bytes,
    rules: RwLock<Arc<Rules>>,
    /// Whether it may do everything, so that nothing is looked at.
    may_all: AtomicBool,
    /// Whether clients are this user without a password.
    is_open: AtomicBool,
}

impl User {
    pub(crate) fn new(name: Bytes, rules: Rules) -> Arc<User> {
        let user =
            User { name, rules: RwLock::default(), may_all: AtomicBool::new(false), is_open: AtomicBool::new(false) };
        user.set(rules);
        Arc::new(user)
    }

    fn set(&self, rules: Rules) {
        let mut place = self.rules.write().expect("no code panics while it holds the rules");
        // Under the lock, so that all three are of the same rules in the end.
        self.may_all.store(rules.allow_all(), Ordering::SeqCst);
        self.is_open.store(rules.is_on && rules.needs_no_password, Ordering::SeqCst);
        *place = Arc::new(rules);
    }

    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().expect("no code panics while it holds the rules"))
    }

    pub(crate) fn may_all(&self) -> bool {
        self.may_all.load(Ordering::SeqCst)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }
}

/// All users of a server.
pub(crate) struct Acl {
    catalog: Catalog,
    default: Arc<User>,
    /// With the default one. Whoever changes rules holds them.
    users: Mutex<BTreeMap<Bytes, Arc<User>>>,
    pub(crate) denials: Denials,
    file: Option<PathBuf>,
    /// Held while the users are written to the file, so that what was gathered last is what stays.
    saving: Mutex<()>,
}

impl Acl {
    /// The users of the settings: of their file, if there is one, or their own.
    pub(crate) fn new(catalog: Catalog, config: &Config) -> Result<Acl, ConfigError> {
        let default = User::new(DEFAULT.into(), Rules::of_default(&config.requirepass, &catalog));
        let users = Mutex::new(BTreeMap::from([(default.name.clone(), Arc::clone(&default))]));
        let file = Some(config.aclfile.clone()).filter(|path| !path.as_os_str().is_empty());
        let acl = Acl { catalog, default, users, denials: Denials::default(), file, saving: Mutex::default() };
        for (name, rules) in &config.users {
            let wrong = |reason: String| ConfigError::User { name: name.clone(), reason };
            if has_spaces(name.as_bytes()) {
                return Err(wrong("a name has no spaces".into()));
            }
            let rules: Vec<Bytes> = rules.split_ascii_whitespace().map(|rule| rule.to_string().into()).collect();
            let mut made = Rules::default();
            made.change(&rules, &acl.catalog)
                .map_err(|error| wrong(String::from_utf8_lossy(&error.text()).into_owned()))?;
            acl.put(&mut acl.lock(), name.clone().into(), made);
        }
        if let Some(path) = &acl.file {
            acl.load(path, &config.requirepass).map_err(ConfigError::AclFile)?;
        }
        Ok(acl)
    }

    /// What rules may name.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The file of users, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The user of those who do not say who they are.
    pub(crate) fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    /// Whether anybody who reaches the server may be the default user. One that is off may be none, but as in Redis that does not
    /// count here.
    pub(crate) fn needs_no_password(&self) -> bool {
        self.default.rules().needs_no_password
    }

    /// Gives the default user one password; an empty one is none.
    pub(crate) fn set_default_password(&self, password: &str) {
        let _users = self.lock();
        let mut rules = Rules::clone(&self.default.rules());
        rules.set_password(password);
        self.default.set(rules);
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<Arc<User>> {
        self.lock().get(name).cloned()
    }

    /// All users in the order of their names.
    pub(crate) fn all(&self) -> Vec<Arc<User>> {
        self.lock().values().cloned().collect()
    }

    /// The user of this name, if the password is right and the user is on.
    pub(crate) fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let user = self.find(name);
        // Whether there is such a user cannot be told from the time.
        let rules = user.as_ref().map_or_else(Arc::default, |user| user.rules());
        let is_right = rules.admits(password);
        user.filter(|_| is_right)
    }

    /// Changes the rules of a user, who is made if there is none of the name.
    pub(crate) fn change(&self, name: &[u8], changes: &[Bytes]) -> Result<Arc<User>, WrongRules> {
        let mut users = self.lock();
        let mut rules = users.get(name).map_or_else(Rules::default, |user| Rules::clone(&user.rules()));
        rules.change(changes, &self.catalog)?;
        Ok(self.put(&mut users, Bytes::copy_from_slice(name), rules))
    }

    fn put(&self, users: &mut BTreeMap<Bytes, Arc<User>>, name: Bytes, rules: Rules) -> Arc<User> {
        match users.get(&name) {
            Some(user) => {
                user.set(rules);
                Arc::clone(user)
            }
            None => {
                let user = User::new(name.clone(), rules);
                users.insert(name, Arc::clone(&user));
                user
            }
        }
    }

    /// Removes a user, who may do nothing from now on. The default one stays.
    pub(crate) fn delete(&self, name: &[u8]) -> Option<Arc<User>> {
        if name == DEFAULT {
            return None;
        }
        let user = self.lock().remove(name)?;
        user.set(Rules::default());
        Some(user)
    }

    /// Replaces all users by those of a file, and says who is gone: all but the default one. That one is as at the start if the file
    /// does not have it.
    pub(crate) fn load(&self, path: &Path, requirepass: &str) -> Result<Vec<Arc<User>>, String> {
        let mut read = file::read(path, &self.catalog)?;
        let default = read.remove(DEFAULT).unwrap_or_else(|| Rules::of_default(requirepass, &self.catalog));
        let mut users = self.lock();
        let new = read.into_iter().map(|(name, rules)| (name.clone(), User::new(name, rules)));
        let mut gone = std::mem::replace(&mut *users, new.collect());
        gone.remove(DEFAULT);
        gone.values().for_each(|user| user.set(Rules::default()));
        self.default.set(default);
        users.insert(self.default.name.clone(), Arc::clone(&self.default));
        Ok(gone.into_values().collect())
    }

    /// Writes all users to a file. Waits for another save.
    pub(crate) fn save(&self, path: &Path) -> std::io::Result<()> {
        let _saving = self.saving.lock().expect("no code panics while it saves the users");
        let lines: Vec<Bytes> = self.all().iter().map(|user| self.line(user)).collect();
        let text: Vec<u8> = lines.iter().flat_map(|line| [&line[..], b"\n"].concat()).collect();
        file::write(path, &text)
    }

    /// A user as a line of a file.
    pub(crate) fn line(&self, user: &User) -> Bytes {
        [b"user ", &user.name[..], b" ", &user.rules().text(&self.catalog)[..]].concat().into()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Bytes, Arc<User>>> {
        self.users.lock().expect("no code panics while it holds the users")
    }
}

#[cfg(test)]
mod tests;
