use std::io;
use std::sync::Arc;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use wakerun::net::TcpStream;
use wakerun::task::JoinSet;
use wakerun_channel::mpsc;

use crate::{alone, run, start};

const CLIENTS: usize = 1000;

#[test]
fn a_thousand_connections_at_once_get_back_what_they_send() {
    let _alone = alone();
    let server = start("echo");
    let address = server.address;
    let idle = server.descriptors();
    run(async {
        // Each client tells that it has been answered, and goes on when all have.
        let (answered, mut answers) = mpsc::channel(CLIENTS);
        let (open, closed) = mpsc::channel::<()>(1);
        let open = Arc::new(open);
        let mut clients = JoinSet::new();
        for n in 0..CLIENTS {
            let (answered, open) = (answered.clone(), open.clone());
            clients.spawn(async move {
                let mut stream = TcpStream::connect(address).await?;
                round(&mut stream, &format!("first of {n}")).await?;
                answered.send(n).await.unwrap();
                open.closed().await;
                // Larger than the system's buffers on the way.
                round(&mut stream, &format!("second of {n} ").repeat(100)).await?;
                stream.close().await?;
                let mut rest = Vec::new();
                stream.read_to_end(&mut rest).await?;
                assert!(rest.is_empty());
                io::Result::Ok(())
            });
        }
        for _ in 0..CLIENTS {
            answers.recv().await.unwrap();
        }
        if let (Some(idle), Some(now)) = (idle, server.descriptors()) {
            assert!(now >= idle + CLIENTS, "all are connected: {idle}, {now}");
        }
        drop(closed);
        for client in clients.join_all().await {
            client.unwrap();
        }
        // The server has let go of all of them.
        while server.descriptors() > idle.map(|idle| idle + 10) {
            wakerun::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
    assert!(server.interrupt().success());
}

/// Sends a text and waits for it to come back.
async fn round(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes()).await?;
    let mut echo = vec![0; text.len()];
    stream.read_exact(&mut echo).await?;
    assert_eq!(echo, text.as_bytes());
    Ok(())
}

#[test]
fn a_client_that_does_not_read_is_not_buffered_without_end() {
    let server = start("echo");
    run(async {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let before = server.resident();
        let piece = vec![7_u8; 256 * 1024];
        // Until the buffers of both systems are full, and the server has stopped to read.
        let mut sent = 0;
        let pause = std::time::Duration::from_millis(300);
        while let Ok(n) = wakerun::time::timeout(pause, (&stream).write(&piece)).await {
            sent += n.unwrap();
            assert!(sent < 1 << 30, "a gigabyte was taken without being read");
        }
        if let (Some(before), Some(now)) = (before, server.resident()) {
            assert!(now < before + (16 << 20), "{before} bytes, then {now}");
        }
        // All of it comes back.
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut back = 0;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match (&stream).read(&mut buffer).await.unwrap() {
                0 => break,
                n => back += n,
            }
        }
        assert_eq!(back, sent);
    });
}
