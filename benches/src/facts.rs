//! What a reader must know of the machine and the build to place the figures.

use std::time::{SystemTime, UNIX_EPOCH};

/// The facts of this run.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The processor's name, or its architecture.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// The operating system.
    pub os: &'static str,
    /// The compiler.
    pub rustc: &'static str,
    /// The day and time, UTC.
    pub date: String,
    /// The command that repeats the run.
    pub command: String,
    /// The commit that was built, where git knows one; with a plus where files differ from it.
    pub commit: &'static str,
}

impl Facts {
    /// Looks around.
    pub fn gather(program: &str) -> Self {
        Self {
            cpu: cpu(),
            cores: std::thread::available_parallelism().map_or(0, |cores| cores.get()),
            os: std::env::consts::OS,
            rustc: env!("BENCH_RUSTC"),
            date: date(
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .map_or(0, |time| time.as_secs()),
            ),
            command: command(program, std::env::args().skip(1)),
            commit: env!("BENCH_COMMIT"),
        }
    }

    /// The machine in one line.
    pub fn machine(&self) -> String {
        let rustc: Vec<&str> = self.rustc.split(' ').take(2).collect();
        format!(
            "{}, {} cores, {}, {}",
            self.cpu,
            self.cores,
            self.os,
            rustc.join(" ")
        )
    }
}

/// The locked version of a package.
pub fn version(package: &str) -> &'static str {
    if package == "std" {
        return env!("BENCH_RUSTC");
    }
    let locked = env!("BENCH_LOCK")
        .split(',')
        .filter_map(|package| package.split_once(' '));
    locked
        .filter(|(name, _)| *name == package)
        .map(|(_, version)| version)
        .next()
        .unwrap_or("unknown")
}

/// The arguments without cargo's, and without the place of the output, which is nobody else's.
fn command(program: &str, mut arguments: impl Iterator<Item = String>) -> String {
    let mut command = program.to_string();
    let mut separator = " -- ";
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => {}
            "--out" => drop(arguments.next()),
            _ => {
                let quote = if argument.contains(' ') { "\"" } else { "" };
                command += &format!("{separator}{quote}{argument}{quote}");
                separator = " ";
            }
        }
    }
    command
}

fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or(std::env::consts::ARCH, |(_, name)| name)
        .to_string()
}

/// `seconds` since 1970 as `YYYY-MM-DD HH:MM UTC`.
fn date(seconds: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [
        31,
        28 + u64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
    ] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!(
        "{year}-{month:02}-{:02} {:02}:{:02} UTC",
        days + 1,
        minutes / 60,
        minutes % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_know_leap_years() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_798_761_599), "2026-12-31 23:59 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00 UTC");
    }

    #[test]
    fn the_command_repeats_the_run_elsewhere() {
        let of = |arguments: &[&str]| {
            command(
                "cargo bench --bench funnel",
                arguments.iter().map(|argument| argument.to_string()),
            )
        };
        assert_eq!(of(&["--bench"]), "cargo bench --bench funnel");
        assert_eq!(
            of(&["quick", "--out", "somewhere", "cap 10/", "--bench"]),
            "cargo bench --bench funnel -- quick \"cap 10/\""
        );
    }

    #[test]
    fn every_pair_has_versions() {
        for package in crate::peers::pairs().iter().flat_map(|pair| pair.packages) {
            assert_ne!(version(package), "unknown", "{package}");
        }
    }
}
