//! Reads what stands in the brackets of the attribute: `flavor = "…", worker_threads = N`.

use crate::Kind;
use crate::error::Error;
use crate::token::Token;

/// The runtime that a function asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    CurrentThread,
    MultiThread {
        /// `None`: as many as the runtime's builder gives.
        workers: Option<usize>,
    },
}

impl Flavor {
    /// What a function gets that asks for nothing.
    pub(crate) fn default_of(kind: Kind) -> Self {
        match kind {
            Kind::Main => Flavor::MultiThread { workers: None },
            Kind::Test => Flavor::CurrentThread,
        }
    }
}

/// Reads the arguments. The places in its errors are those of `tokens`.
pub(crate) fn parse(kind: Kind, tokens: &[Token]) -> Result<Flavor, Error> {
    let mut flavor = None;
    let mut workers = None;

    // Each turn eats one `name = value` and the comma behind it.
    let mut at = 0;
    while at < tokens.len() {
        let Token::Word(name) = &tokens[at] else {
            return Err(Error::at(
                at,
                "expected an argument: `flavor` or `worker_threads`",
            ));
        };
        match name.as_str() {
            "flavor" => set_once(&mut flavor, at, parse_flavor(tokens, at)?, name)?,
            "worker_threads" => set_once(&mut workers, at, parse_workers(tokens, at)?, name)?,
            _ => {
                let message =
                    format!("unknown argument `{name}`: expected `flavor` or `worker_threads`");
                return Err(Error::at(at, message));
            }
        }
        match tokens.get(at + 3) {
            Some(token) if !token.is_punct(',') => {
                return Err(Error::at(at + 3, "expected a comma between arguments"));
            }
            _ => at += 4,
        }
    }

    combine(kind, flavor.map(|(_, flavor)| flavor), workers)
}

/// Remembers an argument and where it stood.
fn set_once<T>(
    slot: &mut Option<(usize, T)>,
    at: usize,
    value: T,
    name: &str,
) -> Result<(), Error> {
    if slot.is_some() {
        return Err(Error::at(at, format!("`{name}` is given twice")));
    }
    *slot = Some((at, value));
    Ok(())
}

/// The flavor as written, before it meets `worker_threads`.
fn parse_flavor(tokens: &[Token], name: usize) -> Result<Flavor, Error> {
    const EXPECTED: &str = "expected `\"multi_thread\"` or `\"current_thread\"`";
    match value(tokens, name, EXPECTED)? {
        Token::Literal(text) if text == "\"multi_thread\"" => {
            Ok(Flavor::MultiThread { workers: None })
        }
        Token::Literal(text) if text == "\"current_thread\"" => Ok(Flavor::CurrentThread),
        Token::Literal(text) if text.starts_with('"') => Err(Error::at(
            name + 2,
            format!("unknown flavor `{text}`: {EXPECTED}"),
        )),
        _ => Err(Error::at(
            name + 2,
            format!("a flavor is a string: {EXPECTED}"),
        )),
    }
}

fn parse_workers(tokens: &[Token], name: usize) -> Result<usize, Error> {
    const EXPECTED: &str = "expected an integer above 0, such as `4`";
    match value(tokens, name, EXPECTED)? {
        Token::Literal(text) => match parse_integer(text) {
            Some(0) => Err(Error::at(
                name + 2,
                "a runtime cannot work with 0 worker threads",
            )),
            Some(workers) => Ok(workers),
            None => Err(Error::at(name + 2, EXPECTED)),
        },
        _ => Err(Error::at(name + 2, EXPECTED)),
    }
}

/// The value of the argument whose name stands at `name`.
fn value<'a>(tokens: &'a [Token], name: usize, expected: &str) -> Result<&'a Token, Error> {
    match (tokens.get(name + 1), tokens.get(name + 2)) {
        (Some(equals), Some(value)) if equals.is_punct('=') && !value.is_punct(',') => Ok(value),
        _ => Err(Error::at(
            name,
            format!("this argument needs a value: {expected}"),
        )),
    }
}

/// Reads an integer literal as Rust writes it: in decimal, with underscores, perhaps with a type.
fn parse_integer(literal: &str) -> Option<usize> {
    let digits = literal.replace('_', "");
    digits.strip_suffix("usize").unwrap_or(&digits).parse().ok()
}

fn combine(
    kind: Kind,
    flavor: Option<Flavor>,
    workers: Option<(usize, usize)>,
) -> Result<Flavor, Error> {
    match (flavor.unwrap_or(Flavor::default_of(kind)), workers) {
        (flavor, None) => Ok(flavor),
        (Flavor::MultiThread { .. }, Some((_, workers))) => Ok(Flavor::MultiThread {
            workers: Some(workers),
        }),
        (Flavor::CurrentThread, Some((at, _))) => {
            let why = match flavor {
                Some(_) => "the flavor `\"current_thread\"` has none",
                None => "the default flavor of a test, `\"current_thread\"`, has none",
            };
            Err(Error::from_to(
                at,
                at + 2,
                format!("`worker_threads` needs `flavor = \"multi_thread\"`: {why}"),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tests::tokens;

    fn main(args: &str) -> Result<Flavor, Error> {
        parse(Kind::Main, &tokens(args))
    }

    fn test(args: &str) -> Result<Flavor, Error> {
        parse(Kind::Test, &tokens(args))
    }

    fn multi_thread(workers: impl Into<Option<usize>>) -> Result<Flavor, Error> {
        Ok(Flavor::MultiThread {
            workers: workers.into(),
        })
    }

    /// Fails unless `result` is an error at `place` that says `part`.
    #[track_caller]
    fn assert_error(
        result: Result<Flavor, Error>,
        place: std::ops::RangeInclusive<usize>,
        part: &str,
    ) {
        let error = result.expect_err("the arguments were accepted");
        assert_eq!(error.place, place, "{}", error.message);
        assert!(error.message.contains(part), "{}", error.message);
    }

    #[test]
    fn without_arguments_main_has_many_threads_and_a_test_has_one() {
        assert_eq!(main(""), multi_thread(None));
        assert_eq!(test(""), Ok(Flavor::CurrentThread));
    }

    #[test]
    fn the_flavor_can_be_chosen() {
        for parse in [main, test] {
            assert_eq!(parse("flavor = \"multi_thread\""), multi_thread(None));
            assert_eq!(
                parse("flavor = \"current_thread\""),
                Ok(Flavor::CurrentThread)
            );
        }
    }

    #[test]
    fn order_and_a_comma_at_the_end_do_not_matter() {
        for args in [
            "flavor = \"multi_thread\" , worker_threads = 3",
            "worker_threads = 3 , flavor = \"multi_thread\"",
            "worker_threads = 3 , flavor = \"multi_thread\" ,",
        ] {
            assert_eq!(test(args), multi_thread(3), "{args}");
        }
    }

    #[test]
    fn workers_are_written_as_rust_writes_integers() {
        for (literal, workers) in [("1", 1), ("16usize", 16), ("1_000", 1000), ("2_usize", 2)] {
            let args = format!("worker_threads = {literal}");
            assert_eq!(main(&args), multi_thread(workers), "{args}");
        }
    }

    #[test]
    fn other_workers_are_refused_at_the_value() {
        assert_error(main("worker_threads = 0"), 2..=2, "0 worker threads");
        for literal in [
            "\"2\"",
            "2.0",
            "2u8",
            "99999999999999999999",
            "COUNT",
            "'2'",
        ] {
            let args = format!("worker_threads = {literal}");
            assert_error(main(&args), 2..=2, "integer above 0");
        }
        assert_error(main("worker_threads = - 2"), 2..=2, "integer above 0");
    }

    #[test]
    fn workers_of_one_thread_are_refused() {
        let both = "flavor = \"current_thread\" , worker_threads = 2";
        assert_error(main(both), 4..=6, "needs `flavor = \"multi_thread\"`");
        assert_error(test("worker_threads = 2"), 0..=2, "default flavor");
    }

    #[test]
    fn unknown_names_are_shown() {
        assert_error(main("threads = 2"), 0..=0, "unknown argument `threads`");
        let second = "worker_threads = 2 , start_paused = true";
        assert_error(main(second), 4..=4, "unknown argument `start_paused`");
        assert_error(main("\"multi_thread\""), 0..=0, "expected an argument");
        assert_error(main(","), 0..=0, "expected an argument");
    }

    #[test]
    fn unknown_flavors_are_shown() {
        assert_error(main("flavor = \"single\""), 2..=2, "`\"single\"`");
        assert_error(main("flavor = multi_thread"), 2..=2, "is a string");
        assert_error(main("flavor = 1"), 2..=2, "is a string");
    }

    #[test]
    fn missing_pieces_are_named() {
        for args in [
            "flavor",
            "flavor =",
            "flavor = , worker_threads = 2",
            "flavor , worker_threads = 2",
            "flavor : \"multi_thread\"",
        ] {
            assert_error(main(args), 0..=0, "needs a value");
        }
        assert_error(
            main("worker_threads = 2 flavor = \"multi_thread\""),
            3..=3,
            "comma",
        );
    }

    #[test]
    fn nothing_is_given_twice() {
        assert_error(
            main("worker_threads = 2 , worker_threads = 2"),
            4..=4,
            "twice",
        );
        assert_error(
            main("flavor = \"multi_thread\" , flavor = \"current_thread\""),
            4..=4,
            "twice",
        );
    }
}
