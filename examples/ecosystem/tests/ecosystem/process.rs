//! Child processes.

use async_process::{Command, Stdio};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use wakerun::task::JoinSet;
use wakerun::time::{sleep, timeout};

use super::{LIMIT, Result, each, pattern};

#[test]
fn output_and_status_come_back() {
    each(|| async {
        let output = Command::new("sh")
            .args(["-c", "echo out; echo err >&2; exit 3"])
            .output()
            .await?;
        assert_eq!(output.stdout, b"out\n");
        assert_eq!(output.stderr, b"err\n");
        assert_eq!(output.status.code(), Some(3));
        assert!(Command::new("no such program").output().await.is_err());
        Ok(())
    });
}

#[test]
fn megabytes_go_through_a_child() {
    each(|| async {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take().unwrap();
        let mut output = child.stdout.take().unwrap();
        let data = pattern(1_000_000);
        let sent = data.clone();
        let writing = wakerun::spawn(async move { input.write_all(&sent).await });
        let mut back = Vec::new();
        output.read_to_end(&mut back).await?;
        writing.await??;
        assert!(back == data);
        assert!(child.status().await?.success());
        Ok(())
    });
}

#[test]
fn many_children_are_waited_for_at_once() {
    each(|| async {
        let mut children = JoinSet::new();
        for n in 0..30 {
            children.spawn(async move {
                let status = Command::new("sh")
                    .args(["-c", &format!("exit {n}")])
                    .status()
                    .await?;
                assert_eq!(status.code(), Some(n));
                Result::Ok(())
            });
        }
        children.join_all().await.into_iter().collect()
    });
}

#[test]
fn a_child_is_given_up_and_killed() {
    each(|| async {
        let mut child = Command::new("sleep")
            .arg("1000")
            .kill_on_drop(true)
            .spawn()?;
        let limit = std::time::Duration::from_millis(20);
        assert!(timeout(limit, child.status()).await.is_err());
        child.kill()?;
        assert!(!timeout(LIMIT, child.status()).await??.success());
        // The runtime's own timers and tasks are not disturbed.
        sleep(limit).await;
        Ok(())
    });
}
