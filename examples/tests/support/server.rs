//! An example that is a server, in a process of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

/// How long anything may take before it counts as hung.
pub(crate) const LIMIT: Duration = Duration::from_secs(100);

/// A server that listens; it is killed when the test is over.
pub(crate) struct Server {
    child: Child,
    /// Kept open: the server may write to it.
    _stdout: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts an example that says on its first line where it listens.
    pub(crate) fn start(mut program: Command) -> Self {
        let mut child = program
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .expect("the example can be started");
        let mut stdout = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
        let mut line = String::new();
        stdout
            .read_line(&mut line)
            .expect("the example says something");
        let address = line
            .trim()
            .strip_prefix("listening on ")
            .and_then(|address| address.parse().ok())
            .unwrap_or_else(|| panic!("not an address: {line:?}"));
        Self {
            child,
            _stdout: stdout,
            address,
        }
    }

    /// Sends what Ctrl-C sends, and waits for the end.
    pub(crate) fn interrupt(self) -> ExitStatus {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).expect("the example runs");
        self.wait()
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self) -> ExitStatus {
        let start = Instant::now();
        while start.elapsed() < LIMIT {
            if let Some(status) = self.child.try_wait().expect("the example was started here") {
                return status;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("the example does not end");
    }

    /// Bytes of memory in use, if the system tells.
    #[allow(dead_code)]
    pub(crate) fn resident(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim()
            .strip_suffix(" kB")?
            .trim()
            .parse::<u64>()
            .ok()
            .map(|kib| kib * 1024)
    }

    /// How many descriptors it has open, if the system tells.
    #[allow(dead_code)]
    pub(crate) fn descriptors(&self) -> Option<usize> {
        Some(
            std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))
                .ok()?
                .count(),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets this process and its children have as many open files as the system allows at all.
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Where that is refused, a thousand connections may still fit.
    let _ = setrlimit(Resource::Nofile, raised);
}
