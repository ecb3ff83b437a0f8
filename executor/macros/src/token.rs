//! Token trees, reduced to what the macros ask about.

use proc_macro::{Delimiter, TokenStream, TokenTree};

/// One token tree. Its place in the list stands for its span.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A keyword or an identifier.
    Word(String),
    /// One character of punctuation.
    Punct(char),
    /// A literal, as it is written.
    Literal(String),
    /// Something in brackets.
    Group {
        delimiter: Delimiter,
        /// The last word in it at the top level, `test` of `#[tokio::test(…)]`.
        last_word: Option<String>,
        empty: bool,
    },
}

impl Token {
    pub(crate) fn is_word(&self, expected: &str) -> bool {
        matches!(self, Token::Word(word) if word == expected)
    }

    pub(crate) fn is_punct(&self, expected: char) -> bool {
        matches!(self, Token::Punct(punct) if *punct == expected)
    }

    pub(crate) fn is_group(&self, expected: Delimiter) -> bool {
        matches!(self, Token::Group { delimiter, .. } if *delimiter == expected)
    }
}

/// Reduces each of `trees` to a token: the places are the same in both lists.
pub(crate) fn reduce(trees: &[TokenTree]) -> Vec<Token> {
    trees.iter().map(Token::from).collect()
}

impl From<&TokenTree> for Token {
    fn from(tree: &TokenTree) -> Self {
        match tree {
            TokenTree::Ident(ident) => Token::Word(ident.to_string()),
            TokenTree::Punct(punct) => Token::Punct(punct.as_char()),
            TokenTree::Literal(literal) => Token::Literal(literal.to_string()),
            TokenTree::Group(group) => Token::Group {
                delimiter: group.delimiter(),
                last_word: last_word(group.stream()),
                empty: group.stream().is_empty(),
            },
        }
    }
}

/// The last word of a path: none if there is none, or if the stream is more than a path and its
/// arguments.
fn last_word(stream: TokenStream) -> Option<String> {
    let mut last = None;
    for tree in stream {
        match tree {
            TokenTree::Ident(ident) => last = Some(ident.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == ':' => {}
            TokenTree::Group(_) => {}
            TokenTree::Punct(_) | TokenTree::Literal(_) => return None,
        }
    }
    last
}

/// Takes away the invisible brackets that a `macro_rules!` macro puts around what it passes on.
pub(crate) fn without_invisible_groups(stream: TokenStream) -> Vec<TokenTree> {
    let mut trees = Vec::new();
    for tree in stream {
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                trees.extend(without_invisible_groups(group.stream()));
            }
            tree => trees.push(tree),
        }
    }
    trees
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Tokens from text with blanks between them; a word may hug its brackets: `(…)`, `#[test]`.
    ///
    /// The compiler's own lexer exists only inside of a macro call.
    pub(crate) fn tokens(text: &str) -> Vec<Token> {
        text.split_whitespace().map(token).collect()
    }

    fn token(text: &str) -> Token {
        let first = text.chars().next().unwrap();
        let group = |delimiter| Token::Group {
            delimiter,
            last_word: inside(text).rsplit(':').next().map(str::to_owned),
            empty: inside(text).is_empty(),
        };
        match first {
            '(' => group(Delimiter::Parenthesis),
            '[' => group(Delimiter::Bracket),
            '{' => group(Delimiter::Brace),
            '«' => group(Delimiter::None),
            '"' | '\'' | '0'..='9' => Token::Literal(text.to_owned()),
            'a'..='z' | 'A'..='Z' | '_' => Token::Word(text.to_owned()),
            _ => {
                assert_eq!(text.chars().count(), 1, "not one token: {text}");
                Token::Punct(first)
            }
        }
    }

    /// The text in the brackets.
    fn inside(text: &str) -> &str {
        let mut characters = text.chars();
        characters.next();
        characters.next_back();
        characters.as_str()
    }
}
