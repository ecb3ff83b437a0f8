use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_lite::io::BufReader;
use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use wakerun::net::TcpStream;
use wakerun::task::JoinSet;
use wakerun_channel::mpsc;

use crate::{alone, run, start};

struct Guest {
    name: String,
    stream: BufReader<TcpStream>,
}

impl Guest {
    /// Connects and waits for the welcome; gives also how many others were there.
    async fn join(address: std::net::SocketAddr) -> io::Result<(Self, usize)> {
        let mut guest = Self {
            name: String::new(),
            stream: BufReader::new(TcpStream::connect(address).await?),
        };
        let welcome = guest.hear().await?;
        let words: Vec<&str> = welcome.split([' ', ',']).collect();
        let ["*", "you", "are", name, "", "with", others, "others"] = words[..] else {
            panic!("not a welcome: {welcome:?}")
        };
        guest.name = name.to_owned();
        Ok((guest, others.parse().unwrap()))
    }

    /// The next line.
    async fn hear(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await?;
        match line.strip_suffix('\n') {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The next line that somebody has said, by whom.
    async fn hear_said(&mut self) -> io::Result<(String, String)> {
        loop {
            let line = self.hear().await?;
            if let Some((who, what)) = line.split_once(": ") {
                return Ok((who.to_owned(), what.to_owned()));
            }
            assert!(line.starts_with("* "), "{line}");
        }
    }

    async fn say(&mut self, text: &str) -> io::Result<()> {
        self.stream
            .get_mut()
            .write_all(format!("{text}\n").as_bytes())
            .await
    }
}

#[test]
fn a_thousand_guests_hear_all_others_in_order() {
    const GUESTS: usize = 1000;
    const SPEAKERS: usize = 20;
    const LINES: usize = 5;
    let _alone = alone();
    let server = start("chat");
    let address = server.address;
    run(async {
        let mut joins = JoinSet::new();
        for _ in 0..GUESTS {
            joins.spawn(Guest::join(address));
        }
        let mut guests = Vec::new();
        let mut counts = Vec::new();
        for joined in joins.join_all().await {
            let (guest, others) = joined.unwrap();
            guests.push(guest);
            counts.push(others);
        }
        counts.sort_unstable();
        assert!(counts.into_iter().eq(0..GUESTS));

        let mut tasks = JoinSet::new();
        for (n, mut guest) in guests.into_iter().enumerate() {
            tasks.spawn(async move {
                let speaks = n < SPEAKERS;
                if speaks {
                    for line in 0..LINES {
                        guest.say(&format!("line {line}")).await?;
                    }
                }
                let mut heard = std::collections::HashMap::new();
                let expected = (SPEAKERS - usize::from(speaks)) * LINES;
                for _ in 0..expected {
                    let (who, what) = guest.hear_said().await?;
                    assert_ne!(who, guest.name, "one's own words do not come back");
                    let next = heard.entry(who).or_insert(0);
                    assert_eq!(what, format!("line {next}"));
                    *next += 1;
                }
                // Kept until all have heard all.
                io::Result::Ok(guest)
            });
        }
        let guests: Vec<_> = tasks
            .join_all()
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        assert_eq!(guests.len(), GUESTS);
    });
    assert!(server.interrupt().success());
}

/// Lines that a speaker is ahead of a listener at most: less than the room keeps for one.
const AHEAD: usize = 100;

#[test]
fn a_slow_guest_is_put_out_and_the_others_hear_everything() {
    let server = start("chat");
    run(async {
        let (slow, _) = Guest::join(server.address).await.unwrap();
        let (mut speaker, _) = Guest::join(server.address).await.unwrap();
        let (mut listener, _) = Guest::join(server.address).await.unwrap();
        let before = server.resident();
        let text = "x".repeat(4000);
        let put_out = Arc::new(OnceLock::new());
        // What the listener has heard, so that the speaker is never far ahead of it.
        let (heard, mut hearing) = mpsc::channel(AHEAD);
        let listening = wakerun::spawn({
            let put_out = put_out.clone();
            async move {
                let mut count = 0;
                loop {
                    let line = listener.hear().await.unwrap();
                    if line.ends_with("was too slow") {
                        put_out.set(line).unwrap();
                    } else if line.ends_with(": the end") {
                        return count;
                    } else if line.contains(": x") {
                        count += 1;
                        heard.send(()).await.unwrap();
                    }
                }
            }
        });
        // Until the slow one is put out: what the system keeps for it may be megabytes.
        let mut said = 0;
        while put_out.get().is_none() {
            speaker.say(&text).await.unwrap();
            said += 1;
            if said > AHEAD {
                hearing.recv().await.unwrap();
            }
        }
        speaker.say("the end").await.unwrap();
        assert_eq!(listening.await.unwrap(), said);
        assert_eq!(
            put_out.get().unwrap(),
            &format!("* {} was too slow", slow.name)
        );
        if let (Some(before), Some(now)) = (before, server.resident()) {
            assert!(now < before + (32 << 20), "{before} bytes, then {now}");
        }
        // The slow one finds what the system kept, and then the end.
        let mut stream = slow.stream.into_inner();
        let mut buffer = vec![0; 1 << 20];
        while !matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)) {}
    });
}

#[test]
fn a_line_without_an_end_ends_the_connection() {
    let server = start("chat");
    run(async {
        let (mut stays, _) = Guest::join(server.address).await.unwrap();
        let (mut talks, _) = Guest::join(server.address).await.unwrap();
        talks
            .stream
            .get_mut()
            .write_all(&[b'x'; 5000])
            .await
            .unwrap();
        while stays.hear().await.unwrap() != format!("* {} has left", talks.name) {}
        assert!(talks.hear().await.is_err());
        // Those who close the connection are told of, too.
        let (leaves, _) = Guest::join(server.address).await.unwrap();
        let name = leaves.name.clone();
        drop(leaves);
        let told = async { while stays.hear().await.unwrap() != format!("* {name} has left") {} };
        wakerun::time::timeout(Duration::from_secs(20), told)
            .await
            .unwrap();
    });
}
