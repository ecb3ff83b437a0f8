//! Code that needs tokio.

use std::time::{Duration, Instant};

use async_compat::{Compat, CompatExt};
use futures_lite::{AsyncReadExt as _, StreamExt};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::codec::{Framed, LinesCodec};
use wakerun::net::TcpStream;
use wakerun::task::JoinSet;

use super::{Result, each, serve};

#[test]
fn sockets_and_timers_of_tokio_work_in_tasks_of_wakerun() {
    each(|| async {
        let address = serve(|stream| async move {
            futures_lite::io::copy(&stream, &stream).await?;
            Ok(())
        })
        .await?;
        let mut clients = JoinSet::new();
        for n in 0..50 {
            clients.spawn(Compat::new(async move {
                let start = Instant::now();
                tokio::time::sleep(Duration::from_millis(5)).await;
                assert!(start.elapsed() >= Duration::from_millis(5));
                let mut stream = tokio::net::TcpStream::connect(address).await?;
                let text = format!("client {n}");
                stream.write_all(text.as_bytes()).await?;
                let mut back = vec![0; text.len()];
                stream.read_exact(&mut back).await?;
                assert_eq!(back, text.as_bytes());
                // Both runtimes are at hand.
                let spawned =
                    tokio::spawn(async { 1 }).await? + wakerun::spawn(async { 2 }).await?;
                assert_eq!(spawned, 3);
                Result::Ok(())
            }));
        }
        clients.join_all().await.into_iter().collect()
    });
}

#[test]
fn streams_of_wakerun_have_the_traits_of_tokio() {
    each(|| async {
        let address = serve(|stream| async {
            let mut lines = Framed::new(stream.compat(), LinesCodec::new());
            while let Some(line) = lines.next().await {
                let answer = format!("{}\n", line?.to_uppercase());
                lines.get_mut().write_all(answer.as_bytes()).await?;
            }
            Ok(())
        })
        .await?;
        let mut stream = TcpStream::connect(address).await?;
        futures_lite::AsyncWriteExt::write_all(&mut stream, b"one\ntwo\n").await?;
        futures_lite::AsyncWriteExt::close(&mut stream).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        assert_eq!(text, "ONE\nTWO\n");
        Ok(())
    });
}
