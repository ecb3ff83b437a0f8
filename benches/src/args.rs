//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::plan::Form;

/// The `main` of a benchmark: answers `--help` with `usage`, and runs `bench` with what the command line asks for.
pub fn main(usage: &str, bench: impl FnOnce(&Args) -> ExitCode) -> ExitCode {
    if std::env::args().any(|argument| argument == "--help" || argument == "-h") {
        print!("{usage}");
        return ExitCode::SUCCESS;
    }
    match Args::parse(std::env::args().skip(1)) {
        Ok(args) => bench(&args),
        Err(wrong) => {
            eprint!("{wrong}\n\n{usage}");
            ExitCode::FAILURE
        }
    }
}

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Args {
    /// `full`, `quick` or `smoke`.
    pub form: Option<Form>,
    /// A part of a cell's name.
    pub filter: String,
    /// `--only`, for the report: parts of it.
    pub only: Vec<String>,
    /// `--list`.
    pub list: bool,
    /// `--rounds`.
    pub rounds: Option<usize>,
    /// `--out`.
    pub out: Option<PathBuf>,
    /// `--save-baseline`.
    pub save_baseline: Option<String>,
    /// `--baseline`.
    pub baseline: Option<String>,
}

impl Args {
    /// Reads the arguments that follow the program's name.
    ///
    /// Cargo passes `--bench` when it benches. Without it, as from `cargo test --all-targets`, the run is a smoke run.
    ///
    /// # Errors
    ///
    /// Says what it does not understand.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut args = Self::default();
        let mut bench = false;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "full" => args.form = Some(Form::Full),
                "quick" => args.form = Some(Form::Quick),
                "smoke" | "--test" => args.form = Some(Form::Smoke),
                "--bench" => bench = true,
                "--list" => args.list = true,
                "--rounds" => {
                    let rounds = value()?.parse().ok().filter(|rounds| *rounds > 0);
                    args.rounds = Some(rounds.ok_or("--rounds needs a number above zero")?);
                }
                "--only" => args.only = value()?.split(',').map(String::from).collect(),
                "--out" => args.out = Some(value()?.into()),
                "--save-baseline" => args.save_baseline = Some(value()?),
                "--baseline" => args.baseline = Some(value()?),
                // What test runners add to a listing.
                "--format" => drop(value()?),
                "--nocapture" | "--ignored" | "--exact" => {}
                option if option.starts_with('-') => {
                    return Err(format!("unknown option {option}"));
                }
                filter => args.filter = filter.into(),
            }
        }
        if !bench {
            args.form = args.form.or(Some(Form::Smoke));
        }
        Ok(args)
    }

    /// How the benchmark ends before it runs one of the cells with these names: where they are to be listed, or where
    /// the filter has left none.
    pub fn without_run(&self, names: &[String]) -> Option<ExitCode> {
        if self.list {
            names.iter().for_each(|name| println!("{name}: benchmark"));
            return Some(ExitCode::SUCCESS);
        }
        if names.is_empty() {
            eprintln!(
                "no cell has a name that contains {:?}; --list names them",
                self.filter
            );
            return Some(ExitCode::FAILURE);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn cargo_bench_means_the_full_form_and_cargo_test_the_smoke_form() {
        assert_eq!(parse("--bench").unwrap().form, None);
        assert_eq!(parse("").unwrap().form, Some(Form::Smoke));
        assert_eq!(parse("--bench quick").unwrap().form, Some(Form::Quick));
        assert_eq!(parse("--bench --test").unwrap().form, Some(Form::Smoke));
    }

    #[test]
    fn options_take_values() {
        let args = parse("--bench kanal --rounds 4 --out charts").unwrap();
        assert_eq!(
            (args.filter.as_str(), args.rounds, args.out),
            ("kanal", Some(4), Some("charts".into()))
        );
        assert!(parse("--rounds 0").is_err());
        assert!(parse("--out").is_err());
        assert!(parse("--quick").is_err());
    }
}
