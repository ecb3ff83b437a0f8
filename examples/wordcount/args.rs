//! The command line.

use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::thread;

/// The answer to `--help`.
pub(crate) const HELP: &str = "\
Count the words of files and folders, and show the most frequent ones.

Usage: wordcount [OPTIONS] PATH...

A PATH is a file, a folder with all that is in it, or - for standard input.
Symbolic links are followed when they are named on the command line, and not
when they are found in a folder. Binary files (with a zero byte near their
beginning) are skipped, and so is what cannot be read.

A word is a run of the letters A to Z, and their case does not matter. With
LC_ALL=C, the words of a file are also counted by

    tr -cs A-Za-z '\\n' < FILE | tr A-Z a-z | sort | uniq -c

Options:
      --top N       show the N most frequent words (10 unless given)
      --all         show all words, in the order of the alphabet: the count,
                    a tab and the word on each line
      --binary      count binary files, too
      --readers N   how many threads read files (4 unless given)
      --parsers N   how many tasks count words (one for each processor)
  -h, --help        show this help

Exit status: 0 if all went well, 1 if something could not be read or written,
2 if the command line is wrong.
";

/// Files are read ahead by this many threads: enough to hide the latency of a disk.
const DEFAULT_READERS: usize = 4;

/// How many readers and parsers there may be. More would only cost memory.
const WORKERS: RangeInclusive<usize> = 1..=256;

/// What the user wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Help,
    Count(Args),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) inputs: Vec<Input>,
    pub(crate) show: Show,
    pub(crate) accept_binary: bool,
    pub(crate) readers: usize,
    pub(crate) parsers: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    StandardInput,
    Path(PathBuf),
}

/// Which counts are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    Top(usize),
    All,
}

/// Why a command line makes no sense.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UsageError {
    NoInputs,
    UnknownOption(String),
    MissingValue(&'static str),
    UnexpectedValue(&'static str),
    NotANumber(&'static str, String),
    OutOfRange(&'static str, RangeInclusive<usize>),
    TopAndAll,
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInputs => {
                f.write_str("nothing to count: name files or folders, or - for standard input")
            }
            Self::UnknownOption(option) => write!(f, "unknown option {option}"),
            Self::MissingValue(option) => write!(f, "{option} needs a number"),
            Self::UnexpectedValue(option) => write!(f, "{option} takes no value"),
            Self::NotANumber(option, value) => {
                write!(f, "{option} needs a number, and {value:?} is none")
            }
            Self::OutOfRange(option, range) => {
                write!(
                    f,
                    "{option} must be from {} to {}",
                    range.start(),
                    range.end()
                )
            }
            Self::TopAndAll => f.write_str("--top and --all exclude each other"),
        }
    }
}

/// Reads the arguments behind the program's name.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Request, UsageError> {
    let mut inputs = Vec::new();
    let mut top = None;
    let mut all = false;
    let mut accept_binary = false;
    let mut readers = DEFAULT_READERS;
    let mut parsers = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(*WORKERS.end());

    let mut args = args.into_iter();
    let mut options_ended = false;
    while let Some(arg) = args.next() {
        // Names of files may be any bytes; those of options never are.
        let option = arg
            .to_str()
            .filter(|text| text.starts_with('-') && !options_ended);
        let Some(option) = option else {
            inputs.push(Input::Path(arg.into()));
            continue;
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (option, None),
        };
        let mut number = |name| number(name, value, &mut args);
        match name {
            "-" => inputs.push(Input::StandardInput),
            "--" => options_ended = true,
            "-h" | "--help" => return Ok(Request::Help),
            "--all" => all = flag("--all", value)?,
            "--binary" => accept_binary = flag("--binary", value)?,
            "--top" => top = Some(number("--top")?),
            "--readers" => readers = within("--readers", number("--readers")?)?,
            "--parsers" => parsers = within("--parsers", number("--parsers")?)?,
            _ => return Err(UsageError::UnknownOption(name.to_owned())),
        }
    }

    let show = match (top, all) {
        (Some(_), true) => return Err(UsageError::TopAndAll),
        (None, true) => Show::All,
        (top, false) => Show::Top(top.unwrap_or(10)),
    };
    if inputs.is_empty() {
        return Err(UsageError::NoInputs);
    }
    Ok(Request::Count(Args {
        inputs,
        show,
        accept_binary,
        readers,
        parsers,
    }))
}

fn flag(name: &'static str, value: Option<&str>) -> Result<bool, UsageError> {
    match value {
        None => Ok(true),
        Some(_) => Err(UsageError::UnexpectedValue(name)),
    }
}

/// The number of `--name=5`, or that of the next argument.
fn number(
    name: &'static str,
    value: Option<&str>,
    rest: &mut impl Iterator<Item = OsString>,
) -> Result<usize, UsageError> {
    let value = match value {
        Some(value) => value.to_owned(),
        None => {
            let next = rest.next().ok_or(UsageError::MissingValue(name))?;
            next.to_string_lossy().into_owned()
        }
    };
    value
        .parse()
        .map_err(|_| UsageError::NotANumber(name, value))
}

fn within(name: &'static str, number: usize) -> Result<usize, UsageError> {
    if WORKERS.contains(&number) {
        Ok(number)
    } else {
        Err(UsageError::OutOfRange(name, WORKERS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Request, UsageError> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[track_caller]
    fn args(line: &str) -> Args {
        match parse_line(line) {
            Ok(Request::Count(args)) => args,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[track_caller]
    fn error(line: &str) -> String {
        parse_line(line).expect_err(line).to_string()
    }

    #[test]
    fn without_options_ten_words_are_shown() {
        let args = args("a b");
        assert_eq!(args.show, Show::Top(10));
        assert_eq!(args.readers, DEFAULT_READERS);
        assert!(!args.accept_binary);
        let paths = ["a", "b"].map(|path| Input::Path(path.into()));
        assert_eq!(args.inputs, paths);
    }

    #[test]
    fn values_stand_behind_the_option_or_in_it() {
        for line in [
            "--top 3 --readers 1 --parsers 2 a",
            "--top=3 a --readers=1 --parsers=2",
        ] {
            let args = args(line);
            assert_eq!(
                (args.show, args.readers, args.parsers),
                (Show::Top(3), 1, 2)
            );
        }
        assert_eq!(args("--all --binary a").show, Show::All);
        assert!(args("--binary a").accept_binary);
    }

    #[test]
    fn a_dash_is_the_standard_input_and_two_end_the_options() {
        assert_eq!(args("-").inputs, [Input::StandardInput]);
        let paths = ["-", "--all"].map(|path| Input::Path(path.into()));
        assert_eq!(args("-- - --all").inputs, paths);
    }

    #[test]
    fn help_wins_wherever_it_stands() {
        assert_eq!(parse_line("-h"), Ok(Request::Help));
        assert_eq!(parse_line("a --all --help"), Ok(Request::Help));
    }

    #[test]
    fn help_knows_every_option_and_its_default() {
        for option in [
            "--top N",
            "--all",
            "--binary",
            "--readers N",
            "--parsers N",
            "--help",
        ] {
            assert!(HELP.contains(option), "{option}");
        }
        assert!(HELP.contains(&format!("({DEFAULT_READERS} unless given)")));
    }

    #[cfg(unix)]
    #[test]
    fn a_path_may_be_any_bytes() {
        use std::os::unix::ffi::OsStringExt;
        let path = OsString::from_vec(b"-\xff".to_vec());
        let Ok(Request::Count(args)) = parse([path.clone()]) else {
            panic!("a path was taken for an option");
        };
        assert_eq!(args.inputs, [Input::Path(path.into())]);
    }

    #[test]
    fn errors_name_the_option() {
        assert!(error("").contains("nothing to count"));
        assert!(error("--all").contains("nothing to count"));
        assert_eq!(error("--topp=1 a"), "unknown option --topp");
        assert_eq!(error("-x a"), "unknown option -x");
        assert_eq!(error("a --top"), "--top needs a number");
        assert_eq!(
            error("--top many a"),
            "--top needs a number, and \"many\" is none"
        );
        assert_eq!(error("--top= a"), "--top needs a number, and \"\" is none");
        assert_eq!(error("--readers 0 a"), "--readers must be from 1 to 256");
        assert_eq!(error("--parsers 257 a"), "--parsers must be from 1 to 256");
        assert_eq!(error("--all=yes a"), "--all takes no value");
        assert_eq!(
            error("--all --top 1 a"),
            "--top and --all exclude each other"
        );
    }
}
