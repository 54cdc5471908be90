//! The modules of a crate, from its root on: which file each is in, and in which file a path ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::edge::Edge;
use crate::source::{ALL, Body, Named, Names, Source};

/// Why the sources of a crate could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that is there and cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file that does not divide into tokens.
    #[error("{} is no Rust: {message}", path.display())]
    NotRust {
        /// The file.
        path: PathBuf,
        /// What the reader of tokens said.
        message: String,
    },
    /// A directory without a crate.
    #[error("{} has neither src/lib.rs nor src/main.rs", directory.display())]
    NoRoot {
        /// Where the crate should be.
        directory: PathBuf,
    },
    /// A module without a file.
    #[error("{} declares the module {name}, and there is neither {name}.rs nor {name}/mod.rs in {}", path.display(), directory.display())]
    NoFile {
        /// The file that declares it.
        path: PathBuf,
        /// The module.
        name: String,
        /// Where its file should be.
        directory: PathBuf,
    },
}

/// How many names that are passed on from file to file are followed; `use` in a circle would never end.
const MOST_HOPS: usize = 16;

/// All modules of one target.
pub(crate) struct Modules {
    /// By their paths from the root.
    modules: BTreeMap<Names, Module>,
    /// Every path that is named anywhere, with the file.
    named: Vec<(PathBuf, Named)>,
}

struct Module {
    /// From the crate's directory.
    file: PathBuf,
    /// What is defined here, modules apart.
    items: Vec<String>,
    /// What is brought in here, by the name under which it is known.
    brought: BTreeMap<String, Names>,
    /// What all is brought in from, by `*`.
    globs: Vec<Names>,
}

impl Modules {
    /// Reads `root`, as `src/lib.rs`, in the crate's directory, and all files that it declares.
    pub(crate) fn read(directory: &Path, root: &Path) -> Result<Modules, Error> {
        let mut modules = Modules { modules: BTreeMap::new(), named: Vec::new() };
        let mut open: Vec<(Names, PathBuf)> = vec![(Vec::new(), root.to_path_buf())];
        while let Some((path, file)) = open.pop() {
            let source = read_source(&directory.join(&file), path)?;
            for declared in &source.declared {
                let folder = Path::new("src").join(declared[..declared.len() - 1].join("/"));
                let name = declared.last().expect("a declared module has a name");
                let found = file_of(directory, &folder, name).ok_or_else(|| Error::NoFile {
                    path: file.clone(),
                    name: name.clone(),
                    directory: folder.clone(),
                })?;
                open.push((declared.clone(), found));
            }
            modules.keep(source, &file);
        }
        Ok(modules)
    }

    fn keep(&mut self, source: Source, file: &Path) {
        for Body { path, items } in source.modules {
            let module = Module { file: file.to_path_buf(), items, brought: BTreeMap::new(), globs: Vec::new() };
            self.modules.insert(path, module);
        }
        for named in source.named {
            let module = self.modules.get_mut(&named.module).expect("a path is named in a module of its file");
            match &named.known_as {
                Some(name) if name == ALL => module.globs.push(named.path.clone()),
                Some(name) => {
                    module.brought.insert(name.clone(), named.path.clone());
                }
                None => {}
            }
            self.named.push((file.to_path_buf(), named));
        }
    }

    /// Every path that ends in another file.
    pub(crate) fn edges(&self) -> Vec<Edge> {
        let edge = |(file, named): &(PathBuf, Named)| {
            let to = self.file_of_path(&named.module, &named.path)?;
            (to != file).then(|| Edge {
                from: file.clone(),
                line: named.line,
                to: to.to_path_buf(),
                name: named.path.join("::"),
            })
        };
        self.named.iter().filter_map(edge).collect()
    }

    /// The file in which what `path` names is defined; `None` if it is in another crate.
    fn file_of_path(&self, module: &[String], path: &[String]) -> Option<&Path> {
        let path = self.absolute(module, path)?;
        self.follow(&path, MOST_HOPS).map(|found| self.modules[&found].file.as_path())
    }

    /// `path` from the root, if its first name is one that leads into this crate from `module`.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Names> {
        let mut at = module.to_vec();
        let mut rest = path;
        match path.first().map(String::as_str)? {
            "crate" => {
                at.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
            }
            first => {
                let mut child = at.clone();
                child.push(first.to_owned());
                // `use hex::encode as hex` brings in a name from the other crate `hex`, not from itself.
                let itself = self.modules[module].brought.get(first).is_some_and(|brought| brought == path);
                let known = self.modules[module].brought.contains_key(first) && !itself;
                if !self.modules.contains_key(&child) && !known {
                    return None;
                }
            }
        }
        at.extend_from_slice(rest);
        Some(at)
    }

    /// The module in which `path`, from the root, ends. Names that were brought in lead on to where they come from.
    fn follow(&self, path: &[String], hops: usize) -> Option<Names> {
        let mut at: Names = Vec::new();
        for (depth, name) in path.iter().enumerate() {
            let mut child = at.clone();
            child.push(name.clone());
            if self.modules.contains_key(&child) {
                at = child;
                continue;
            }
            let from = self.source_of(&at, name, hops);
            return Some(match from {
                Some(mut from) => {
                    from.extend_from_slice(&path[depth + 1..]);
                    self.follow(&from, hops - 1)?
                }
                None => at,
            });
        }
        Some(at)
    }

    /// From where `module` has a name that it does not define, as a path from the root; `None` if it defines the name,
    /// or has it from another crate.
    fn source_of(&self, module: &[String], name: &str, hops: usize) -> Option<Names> {
        let Module { items, brought, globs, .. } = &self.modules[module];
        if hops == 0 || items.iter().any(|item| item == name) {
            return None;
        }
        if let Some(path) = brought.get(name) {
            return self.absolute(module, path);
        }
        globs.iter().find_map(|glob| {
            let from = self.follow(&self.absolute(module, glob)?, hops - 1)?;
            let has = self.modules[&from].items.iter().any(|item| item == name)
                || self.source_of(&from, name, hops - 1).is_some();
            has.then(|| [from, vec![name.to_owned()]].concat())
        })
    }
}

fn read_source(path: &Path, module: Names) -> Result<Source, Error> {
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::Unreadable { path: path.to_path_buf(), source })?;
    Source::parse(&text, module).map_err(|message| Error::NotRust { path: path.to_path_buf(), message })
}

fn file_of(directory: &Path, folder: &Path, name: &str) -> Option<PathBuf> {
    [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")]
        .into_iter()
        .find(|file| directory.join(file).is_file())
}
