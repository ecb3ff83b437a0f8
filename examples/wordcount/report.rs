//! The result, for people and for programs.

use std::fmt;
use std::io::{self, Write};

use crate::args::Show;
use crate::pipeline::Summary;
use crate::words::Counts;

/// Writes the counts that the user wants to see.
///
/// # Errors
///
/// Fails as writing to `out` does.
pub(crate) fn write_counts(out: &mut dyn Write, counts: &Counts, show: Show) -> io::Result<()> {
    match show {
        Show::Top(n) => {
            let top = counts.top(n);
            let width = top.first().map_or(0, |(_, count)| count.to_string().len());
            for (word, count) in top {
                write!(out, "{count:width$} ")?;
                write_line(out, word)?;
            }
        }
        Show::All => {
            for (word, count) in counts.all() {
                write!(out, "{count}\t")?;
                write_line(out, word)?;
            }
        }
    }
    Ok(())
}

fn write_line(out: &mut dyn Write, word: &[u8]) -> io::Result<()> {
    out.write_all(word)?;
    out.write_all(b"\n")
}

/// One line about the whole run.
pub(crate) struct Totals<'a>(pub(crate) &'a Summary);

impl fmt::Display for Totals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = self.0;
        let seconds = summary.elapsed.as_secs_f64();
        write!(
            f,
            "{} ({} distinct) in {}; {} in {seconds:.3} s, {}/s",
            Number(summary.counts.total(), "word"),
            summary.counts.distinct(),
            Number(summary.files, "file"),
            Bytes(summary.bytes as f64),
            // A clock that did not move yet is no reason to show infinity.
            Bytes(summary.bytes as f64 / seconds.max(1e-9)),
        )?;
        if summary.binary > 0 {
            write!(f, "; {} skipped", Number(summary.binary, "binary file"))?;
        }
        if summary.failed > 0 {
            write!(f, "; {}", Number(summary.failed, "error"))?;
        }
        Ok(())
    }
}

/// How many of something there are.
pub(crate) struct Number(pub(crate) u64, pub(crate) &'static str);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Number(number, what) = self;
        let plural = if *number == 1 { "" } else { "s" };
        write!(f, "{number} {what}{plural}")
    }
}

/// A number of bytes, with a unit that fits.
pub(crate) struct Bytes(pub(crate) f64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut number = self.0;
        let mut units = ["B", "kB", "MB", "GB"].into_iter();
        let mut unit = units.next().unwrap_or_default();
        for larger in units {
            // What would be shown as 1000.0 has the next unit.
            if number < 999.95 {
                break;
            }
            number /= 1000.0;
            unit = larger;
        }
        let digits = if unit == "B" { 0 } else { 1 };
        write!(f, "{number:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, show: Show) -> String {
        let mut counts = Counts::default();
        counts.add_text(&mut text.as_bytes().to_vec());
        let mut out = Vec::new();
        write_counts(&mut out, &counts, show).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_top_is_aligned() {
        let text = format!("{}b c c", "a ".repeat(12));
        assert_eq!(written(&text, Show::Top(2)), "12 a\n 2 c\n");
        assert_eq!(written("", Show::Top(2)), "");
        assert_eq!(written("a", Show::Top(0)), "");
    }

    #[test]
    fn all_counts_are_lines_of_count_and_word() {
        assert_eq!(written("b a b", Show::All), "1\ta\n2\tb\n");
    }

    #[test]
    fn one_is_no_plural() {
        for (number, text) in [(0, "0 files"), (1, "1 file"), (2, "2 files")] {
            assert_eq!(Number(number, "file").to_string(), text);
        }
    }

    #[test]
    fn bytes_have_a_unit_that_fits() {
        for (bytes, text) in [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1000.0, "1.0 kB"),
            (123_456.0, "123.5 kB"),
            (999_960.0, "1.0 MB"),
            (5e9, "5.0 GB"),
            (5e12, "5000.0 GB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
