//! What one module declares and names, read from its tokens.
//!
//! Tokens, not a syntax tree: the arguments of macros (`html!`, `labeled_enum!`) contain paths and items, too.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Segments of a path: `["super", "page", "Page"]`. The name of a macro that is called without a path ends with `!`.
pub type Path = Vec<String>;

/// The declarations of a module, and the paths that its code contains.
#[derive(Default)]
pub struct Declarations {
    /// `mod name;` and `mod name { … }`, with the content of an inline module.
    pub modules: Vec<(String, Option<Self>)>,
    /// Types, functions, constants and macros that the module defines.
    pub items: BTreeSet<String>,
    /// The macros among `items`.
    pub macros: BTreeSet<String>,
    /// The names that `use` brings into the module.
    pub imports: Vec<Import>,
    /// The paths outside of `use`, also those of one segment that may name an imported item.
    pub paths: BTreeSet<Path>,
}

/// A name that a `use` declaration imports.
pub struct Import {
    /// What is imported.
    pub path: Path,
    /// The name in the module. `*` imports all names of `path`.
    pub name: String,
    /// Whether it is exported under this name (`pub use`, `pub(crate) use`).
    pub public: bool,
}

impl Declarations {
    /// Reads the tokens of a file or of an inline module, without code that only tests contain.
    pub fn read(tokens: TokenStream) -> Self {
        let mut this = Self::default();
        this.scan(tokens, true);
        this
    }

    /// `items`: whether these are the tokens of a module, not those of a body.
    fn scan(&mut self, tokens: TokenStream, items: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            let keyword = match token {
                TokenTree::Group(group) => {
                    self.scan(group.stream(), false);
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if let Some(attribute) = group(&tokens, at, Delimiter::Bracket) {
                        at += 1;
                        if is_for_tests(&attribute) {
                            at = end_of_item(&tokens, at);
                        }
                        self.read_attribute(&attribute);
                    }
                    continue;
                }
                // `$name` in a macro is no name, nor is `'static`. `$crate` begins a path.
                TokenTree::Punct(punct) if ['$', '\''].contains(&punct.as_char()) => {
                    at += usize::from(word(&tokens, at).is_some_and(|word| word != "crate"));
                    continue;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => continue,
                TokenTree::Ident(word) => word.to_string(),
            };
            match (keyword.as_str(), word(&tokens, at)) {
                // The group of `pub(in super::name)` names no item.
                ("pub", _) => {
                    at += usize::from(group(&tokens, at, Delimiter::Parenthesis).is_some());
                }
                ("use", _) => {
                    let public = at > 1
                        && match &tokens[at - 2] {
                            TokenTree::Ident(word) => word == "pub",
                            TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
                            TokenTree::Punct(_) | TokenTree::Literal(_) => false,
                        };
                    let length =
                        tokens[at..].iter().take_while(|token| !is_punct(Some(token), ';')).count();
                    self.read_use(&tokens[at..at + length], &Path::new(), public);
                    at += length;
                }
                ("mod", Some(name)) => {
                    let body = group(&tokens, at + 1, Delimiter::Brace);
                    self.modules.push((name, body.map(Self::read)));
                    at += 2;
                }
                ("macro_rules", None) => {
                    let name = word(&tokens, at + 1);
                    self.macros.extend(name.clone());
                    self.items.extend(name);
                    at += 2;
                }
                // In `const fn name`, the next word is the kind.
                ("const", Some(kind)) if ["fn", "unsafe", "async"].contains(&kind.as_str()) => {}
                (
                    "struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static",
                    name,
                ) => {
                    // No name: `fn(&B)`, `.union(other)`, `const { … }`; nor has `*const T` one.
                    let is_pointer = at > 1 && is_punct(tokens.get(at - 2), '*');
                    let name = name.filter(|_| !is_pointer);
                    at += usize::from(name.is_some());
                    self.items.extend(name.filter(|_| items));
                }
                _ => at = self.read_path(&tokens, at - 1, items),
            }
        }
    }

    /// Records the path that begins at `start`. Returns the index of the token behind it.
    fn read_path(&mut self, tokens: &[TokenTree], start: usize, items: bool) -> usize {
        let mut path = Path::new();
        let mut at = start;
        while let Some(segment) = word(tokens, at) {
            path.push(segment);
            at += 1;
            if !(is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')) {
                break;
            }
            at += 2;
        }
        let arguments = match tokens.get(at + 1) {
            Some(TokenTree::Group(arguments)) if is_punct(tokens.get(at), '!') => Some(arguments),
            _ => None,
        };
        let is_member = start > 0 && is_punct(tokens.get(start - 1), '.');
        // A lower-case word alone is a variable or a field, unless it is called.
        let is_name = path.len() > 1
            || path[0].starts_with(char::is_uppercase)
            || group(tokens, at, Delimiter::Parenthesis).is_some();
        if path.len() == 1 && arguments.is_some() {
            self.paths.insert(vec![format!("{}!", path[0])]);
        } else if is_name && !is_member {
            self.paths.insert(path);
        }
        if let Some(arguments) = arguments.filter(|_| items) {
            self.scan(arguments.stream(), true); // such as `labeled_enum! { pub enum … }`
            at += 2;
        }
        at
    }

    /// `#[serde(with = "text::option")]` uses two functions of the module.
    fn read_attribute(&mut self, tokens: &TokenStream) {
        let text = tokens.to_string();
        let name = text.split_once("(with = \"").and_then(|(_, rest)| rest.split_once('"'));
        if let Some((module, _)) = name {
            self.paths.insert(module.split("::").chain(["serialize"]).map(str::to_owned).collect());
        }
    }

    /// Reads the tree of a `use` declaration: `super::{page::Page, text as t}`.
    fn read_use(&mut self, tree: &[TokenTree], prefix: &Path, public: bool) {
        for branch in tree.split(|token| is_punct(Some(token), ',')) {
            let mut path = prefix.clone();
            let mut name = None;
            for (at, token) in branch.iter().enumerate() {
                match token {
                    TokenTree::Group(group) => {
                        let tree: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.read_use(&tree, &path, public);
                        path.clear();
                    }
                    TokenTree::Punct(punct) if punct.as_char() == '*' => {
                        name = Some("*".to_owned());
                    }
                    TokenTree::Ident(ident) if ident == "as" => name = word(branch, at + 1),
                    // In braces, `self` is the module in front of them.
                    TokenTree::Ident(ident) if ident == "self" && !path.is_empty() => {}
                    TokenTree::Ident(ident) if name.is_none() => path.push(ident.to_string()),
                    _ => {}
                }
            }
            if let Some(name) = name.or_else(|| path.last().cloned()) {
                self.imports.push(Import { path, name, public });
            }
        }
    }
}

fn word(tokens: &[TokenTree], at: usize) -> Option<String> {
    let Some(TokenTree::Ident(word)) = tokens.get(at) else { return None };
    Some(word.to_string())
}

fn is_punct(token: Option<&TokenTree>, expected: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == expected)
}

fn group(tokens: &[TokenTree], at: usize, delimiter: Delimiter) -> Option<TokenStream> {
    let Some(TokenTree::Group(group)) = tokens.get(at) else { return None };
    (group.delimiter() == delimiter).then(|| group.stream())
}

/// `cfg(test)`, `cfg(any(test, feature = "testing"))`.
fn is_for_tests(attribute: &TokenStream) -> bool {
    let text = attribute.to_string();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    words[0] == "cfg"
        && (words.contains(&"test") || words.contains(&"testing"))
        && !words.contains(&"not")
}

/// The index behind the item, field or arm that begins at `at`.
fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    let items =
        ["mod", "use", "fn", "struct", "enum", "impl", "const", "static", "type", "trait", "let"];
    let mut is_item = false;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Ident(word) => is_item |= items.iter().any(|item| word == item),
            TokenTree::Punct(punct)
                if punct.as_char() == ';' || punct.as_char() == ',' && !is_item =>
            {
                break;
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
            _ => {}
        }
    }
    at
}
