//! One file as its tokens: the modules in it, those that it declares, and the paths that it names.
//!
//! Tokens, not syntax: a path reads the same in a `use`, in an expression, in an attribute and in the arguments of a macro,
//! where a parser of Rust sees none.

mod cursor;

use cursor::Cursor;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path, by its names.
pub(crate) type Names = Vec<String>;

/// What one file says.
#[derive(Default)]
pub(crate) struct Source {
    /// The file's own module and those with a body in it.
    pub(crate) modules: Vec<Body>,
    /// Modules in files of their own, from the root.
    pub(crate) declared: Vec<Names>,
    /// All paths that can lead into another file.
    pub(crate) named: Vec<Named>,
}

/// A module that has its body in the file.
pub(crate) struct Body {
    /// From the root.
    pub(crate) path: Names,
    /// What it defines, modules apart.
    pub(crate) items: Vec<String>,
}

/// A path that a line names.
pub(crate) struct Named {
    /// The module around the line, from the root.
    pub(crate) module: Names,
    pub(crate) line: usize,
    /// As written, with braces taken apart; without a `self` or `*` at the end.
    pub(crate) path: Names,
    /// The name under which a `use` makes it known in the module, [`ALL`] for everything in it; `None` in bodies.
    pub(crate) known_as: Option<String>,
}

/// What a `use` brings in from a whole module.
pub(crate) const ALL: &str = "*";

/// The words before the name of something that a module defines.
const DEFINING: [&str; 8] = ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];

/// Where a path begins that leads into the crate for certain.
const ANCHORS: [&str; 3] = ["crate", "self", "super"];

/// Where the reader is.
#[derive(Clone)]
struct Place {
    module: Names,
    /// The body of the module itself, not one of a function or an argument of a macro.
    items: bool,
}

impl Source {
    /// Reads `text`, the file of `module`; an error says in which line it is no Rust.
    pub(crate) fn parse(text: &str, module: Names) -> Result<Source, String> {
        let tokens: TokenStream = text
            .parse()
            .map_err(|error: proc_macro2::LexError| format!("line {}: {error}", error.span().start().line))?;
        let mut source = Source::default();
        source.module(tokens, module);
        source.drop_foreign();
        Ok(source)
    }

    fn module(&mut self, tokens: TokenStream, path: Names) {
        self.modules.push(Body { path: path.clone(), items: Vec::new() });
        self.tokens(tokens, &Place { module: path, items: true });
    }

    fn tokens(&mut self, tokens: TokenStream, place: &Place) {
        let mut cursor = Cursor::new(tokens);
        while let Some(token) = cursor.peek(0).cloned() {
            if let Some(attribute) = cursor.attribute() {
                match (attribute.for_tests(), attribute.inner) {
                    (true, true) => return,
                    (true, false) => cursor.skip_item(),
                    (false, _) => self.tokens(attribute.tokens, place),
                }
            } else if cursor.separator() {
                cursor.skip_path();
            } else if let TokenTree::Ident(word) = token {
                self.word(&word.to_string(), &mut cursor, place);
            } else {
                cursor.advance();
                if let TokenTree::Group(group) = token {
                    self.tokens(group.stream(), &Place { items: false, ..place.clone() });
                }
            }
        }
    }

    /// Reads on from a word, at which `cursor` is.
    fn word(&mut self, word: &str, cursor: &mut Cursor, place: &Place) {
        match word {
            "mod" => {
                cursor.advance();
                self.submodule(cursor, place);
            }
            "use" => {
                cursor.advance();
                // In a bound it says which parameters a type may name: `impl Sized + use<'a>`.
                if matches!(cursor.peek(0), Some(TokenTree::Punct(next)) if next.as_char() == '<') {
                    return;
                }
                if !cursor.separator() {
                    self.tree(cursor, Vec::new(), place, true);
                }
                cursor.skip_to_semicolon();
            }
            "pub" => {
                cursor.advance();
                cursor.skip_visibility();
            }
            _ if cursor.path_follows() => self.tree(cursor, Vec::new(), place, false),
            _ => {
                cursor.advance();
                if let (true, true, Some(TokenTree::Ident(name))) =
                    (place.items, DEFINING.contains(&word), cursor.peek(0))
                {
                    self.define(&place.module, name.to_string());
                }
            }
        }
    }

    fn define(&mut self, module: &Names, name: String) {
        let body = self.modules.iter_mut().find(|body| body.path == *module).expect("the body that is being read");
        body.items.push(name);
    }

    /// Reads on after `mod`.
    fn submodule(&mut self, cursor: &mut Cursor, place: &Place) {
        let Some(TokenTree::Ident(name)) = cursor.peek(0).cloned() else { return };
        cursor.advance();
        let path = [place.module.clone(), vec![name.to_string()]].concat();
        match cursor.peek(0).cloned() {
            Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => self.module(body.stream(), path),
            Some(TokenTree::Punct(end)) if end.as_char() == ';' => self.declared.push(path),
            _ => return,
        }
        cursor.advance();
    }

    /// Reads a path from a name, a brace or a `*` on, `before` being what stood before it.
    fn tree(&mut self, cursor: &mut Cursor, before: Names, place: &Place, used: bool) {
        let Some(token) = cursor.peek(0).cloned() else { return };
        let line = token.span().start().line;
        match token {
            TokenTree::Ident(name) => {
                let goes_on = cursor.path_follows();
                cursor.advance();
                let path = [before, vec![name.to_string()]].concat();
                if goes_on {
                    cursor.separator();
                    self.tree(cursor, path, place, used);
                } else {
                    let renamed = if used { cursor.renamed() } else { None };
                    self.name(path, renamed, line, place, used);
                }
            }
            TokenTree::Group(group) => {
                cursor.advance();
                let mut inner = Cursor::new(group.stream());
                while inner.peek(0).is_some() {
                    self.tree(&mut inner, before.clone(), place, used);
                    inner.skip_past_comma();
                }
            }
            _ => {
                cursor.advance();
                self.name(before, Some(ALL.to_owned()), line, place, used);
            }
        }
    }

    /// Takes down a path that ends here; `renamed` is the name after `as`, or [`ALL`].
    fn name(&mut self, mut path: Names, renamed: Option<String>, line: usize, place: &Place, used: bool) {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let known_as = renamed.or_else(|| path.last().cloned()).filter(|_| used && place.items);
        self.named.push(Named { module: place.module.clone(), line, path, known_as });
    }

    /// Forgets the paths in expressions that begin with neither an anchor nor a module below: `Vec::new`. What a `use` has
    /// brought in is counted at the `use`.
    fn drop_foreign(&mut self) {
        let Source { modules, declared, named } = self;
        named.retain(|Named { module, path, known_as, .. }| {
            let below = [module.as_slice(), &path[..1]].concat();
            known_as.is_some()
                || ANCHORS.contains(&path[0].as_str())
                || declared.contains(&below)
                || modules.iter().any(|body| body.path == below)
        });
    }
}
