//! Finds the parts of a function that the macros change or must not accept.

use proc_macro::Delimiter;

use crate::Kind;
use crate::error::Error;
use crate::token::Token;

/// Where the parts of an `async fn` without parameters stand. The body is the last token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) async_keyword: usize,
    pub(crate) name: usize,
}

/// Finds the parts of the function in `tokens`, or says why the attribute does not fit it.
pub(crate) fn parse(kind: Kind, tokens: &[Token]) -> Result<Signature, Error> {
    let start = skip_attributes(kind, tokens)?;
    let qualifiers = skip_visibility(tokens, start);
    let (async_keyword, fn_keyword) = parse_qualifiers(kind, tokens, qualifiers)?;
    let name = fn_keyword + 1;

    let Some(async_keyword) = async_keyword else {
        let message = format!(
            "`{}` runs the future of an `async fn`: write `async` in front of `fn`",
            kind.attribute()
        );
        return Err(Error::from_to(fn_keyword, name, message));
    };
    check_parameters(kind, tokens, name)?;
    Ok(Signature {
        async_keyword,
        name,
    })
}

/// Skips all `#[…]`, and refuses a second attribute that makes a test of the function.
fn skip_attributes(kind: Kind, tokens: &[Token]) -> Result<usize, Error> {
    let mut at = 0;
    while tokens.get(at).is_some_and(|token| token.is_punct('#')) {
        let attribute = tokens.get(at + 1);
        if let (Kind::Test, Some(Token::Group { last_word, .. })) = (kind, attribute)
            && last_word.as_deref() == Some("test")
        {
            let message = format!(
                "a second test attribute: `{}` is enough, and both would run the test twice",
                kind.attribute()
            );
            return Err(Error::from_to(at, at + 1, message));
        }
        at += 2;
    }
    Ok(at)
}

/// Skips `pub`, `pub(…)`, or the invisible group that `$vis:vis` of a `macro_rules!` macro leaves.
fn skip_visibility(tokens: &[Token], start: usize) -> usize {
    let is_group = |at: usize, delimiter| tokens.get(at).is_some_and(|t| t.is_group(delimiter));
    if is_group(start, Delimiter::None) {
        start + 1
    } else if !tokens.get(start).is_some_and(|token| token.is_word("pub")) {
        start
    } else if is_group(start + 1, Delimiter::Parenthesis) {
        start + 2
    } else {
        start + 1
    }
}

/// Reads all words up to `fn`: the places of `async`, if it is there, and of `fn`.
fn parse_qualifiers(
    kind: Kind,
    tokens: &[Token],
    start: usize,
) -> Result<(Option<usize>, usize), Error> {
    let mut async_keyword = None;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token {
            Token::Word(word) => match word.as_str() {
                "fn" => return Ok((async_keyword, at)),
                "async" => async_keyword = Some(at),
                "const" | "unsafe" | "extern"
                    if tokens[at..].iter().any(|token| token.is_word("fn")) =>
                {
                    let message = format!(
                        "`{}` cannot be used on a function that is `{word}`",
                        kind.attribute()
                    );
                    return Err(Error::at(at, message));
                }
                _ => break,
            },
            _ => break,
        }
    }
    Err(Error::at(
        start,
        format!("`{}` can only be used on an `async fn`", kind.attribute()),
    ))
}

/// Checks what follows the function's name.
fn check_parameters(kind: Kind, tokens: &[Token], name: usize) -> Result<(), Error> {
    match tokens.get(name + 1) {
        Some(token) if token.is_punct('<') => {
            let message = format!(
                "a function with `{}` cannot be generic: nobody could choose its parameters",
                kind.attribute()
            );
            return Err(Error::from_to(name, name + 1, message));
        }
        Some(Token::Group { empty: false, .. }) => {
            let message = format!(
                "a function with `{}` cannot have parameters: nobody could pass them",
                kind.attribute()
            );
            return Err(Error::at(name + 1, message));
        }
        _ => {}
    }
    if let Some(at) = tokens.iter().position(|token| token.is_word("where")) {
        let message = format!(
            "a function with `{}` cannot have a `where` clause",
            kind.attribute()
        );
        return Err(Error::at(at, message));
    }
    match tokens.last() {
        Some(body) if body.is_group(Delimiter::Brace) || body.is_group(Delimiter::None) => Ok(()),
        _ => Err(Error::at(
            name,
            format!("a function with `{}` needs a body", kind.attribute()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tests::tokens;
    use std::ops::RangeInclusive;

    #[track_caller]
    fn assert_parts(item: &str, async_keyword: usize, name: usize) {
        let expected = Signature {
            async_keyword,
            name,
        };
        for kind in [Kind::Main, Kind::Test] {
            assert_eq!(parse(kind, &tokens(item)).as_ref(), Ok(&expected));
        }
    }

    #[track_caller]
    fn assert_error(kind: Kind, item: &str, place: RangeInclusive<usize>, part: &str) {
        let error = parse(kind, &tokens(item)).expect_err("the function was accepted");
        assert_eq!(error.place, place, "{}", error.message);
        assert!(error.message.contains(part), "{}", error.message);
        assert!(
            error.message.contains(kind.attribute()),
            "{}",
            error.message
        );
    }

    #[test]
    fn the_shortest_function() {
        assert_parts("async fn main () {}", 0, 2);
    }

    #[test]
    fn attributes_are_skipped() {
        assert_parts("# [doc] # [should_panic] async fn f () {…}", 4, 6);
        assert_parts("# [cfg] pub async fn f () {…}", 3, 5);
    }

    #[test]
    fn any_visibility_is_skipped() {
        assert_parts("pub async fn f () {}", 1, 3);
        assert_parts("pub (crate) async fn f () {}", 2, 4);
        assert_parts("«pub» async fn f () {}", 1, 3);
        assert_parts("«» async fn f () {}", 1, 3);
    }

    #[test]
    fn any_return_type_is_skipped() {
        assert_parts("async fn f () - > ! {}", 0, 2);
        assert_parts(
            "async fn f () - > Result < () , Box < dyn Error > > {…}",
            0,
            2,
        );
        assert_parts("async fn f () - > «…» «…»", 0, 2);
    }

    #[test]
    fn a_function_that_is_not_async_is_refused_at_its_name() {
        assert_error(Kind::Main, "fn main () {}", 0..=1, "`async` in front of");
        assert_error(Kind::Test, "pub fn f () {}", 1..=2, "`async` in front of");
    }

    #[test]
    fn anything_but_a_function_is_refused() {
        for item in [
            "struct S ;",
            "const N : u8 = 1 ;",
            "mod m {…}",
            "async move {}",
            "",
        ] {
            assert_error(Kind::Main, item, 0..=0, "only be used on an `async fn`");
        }
        assert_error(Kind::Main, "# [x] pub use a ;", 3..=3, "only be used on");
    }

    #[test]
    fn other_qualifiers_are_refused() {
        assert_error(Kind::Main, "async unsafe fn f () {}", 1..=1, "`unsafe`");
        assert_error(Kind::Main, "const fn f () {}", 0..=0, "`const`");
        assert_error(
            Kind::Main,
            "async extern \"C\" fn f () {}",
            1..=1,
            "`extern`",
        );
    }

    #[test]
    fn generics_are_refused() {
        assert_error(Kind::Test, "async fn f < T > () {}", 2..=3, "generic");
        let clause = "async fn f () where String : Clone {}";
        assert_error(Kind::Test, clause, 4..=4, "`where`");
    }

    #[test]
    fn parameters_are_refused() {
        assert_error(Kind::Main, "async fn f (x:u8) {}", 3..=3, "parameters");
        assert_error(Kind::Test, "async fn f (self) {}", 3..=3, "parameters");
    }

    #[test]
    fn a_missing_body_is_refused() {
        assert_error(Kind::Main, "async fn f () ;", 2..=2, "body");
        assert_error(Kind::Main, "async fn f", 2..=2, "body");
    }

    #[test]
    fn only_a_test_refuses_a_second_test_attribute() {
        for item in [
            "# [test] async fn f () {}",
            "# [core::test] async fn f () {}",
        ] {
            assert_error(Kind::Test, item, 0..=1, "second");
            assert!(parse(Kind::Main, &tokens(item)).is_ok());
        }
        assert_parts("# [cfg] # [test_log] async fn f () {}", 4, 6);
    }
}
