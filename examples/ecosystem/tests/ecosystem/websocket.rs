//! WebSockets over wakerun's streams.

use std::net::SocketAddr;

use async_tungstenite::tungstenite::{Error, Message};
use async_tungstenite::{accept_async, client_async};
use futures_lite::StreamExt;
use wakerun::net::TcpStream;
use wakerun::task::JoinSet;

use super::{Result, each, pattern, serve};

async fn echo_server() -> Result<SocketAddr> {
    serve(|stream| async {
        let mut socket = accept_async(stream).await?;
        while let Some(message) = socket.next().await {
            let message = message?;
            if message.is_text() || message.is_binary() {
                socket.send(message).await?;
            }
        }
        Ok(())
    })
    .await
}

#[test]
fn many_clients_exchange_messages() {
    each(|| async {
        let address = echo_server().await?;
        let mut clients = JoinSet::new();
        for n in 0..50 {
            clients.spawn(async move {
                let stream = TcpStream::connect(address).await?;
                let (mut socket, _) = client_async(format!("ws://{address}/"), stream).await?;
                for round in 0..20 {
                    let message = Message::text(format!("{n}, {round}"));
                    socket.send(message.clone()).await?;
                    assert_eq!(socket.next().await.unwrap()?, message);
                }
                socket.close(None).await?;
                while let Some(message) = socket.next().await {
                    assert!(message?.is_close());
                }
                Result::Ok(())
            });
        }
        clients.join_all().await.into_iter().collect()
    });
}

#[test]
fn a_message_larger_than_all_buffers_comes_back_whole() {
    each(|| async {
        let address = echo_server().await?;
        let stream = TcpStream::connect(address).await?;
        let (mut socket, _) = client_async(format!("ws://{address}/"), stream).await?;
        let message = Message::binary(pattern(5_000_000));
        socket.send(message.clone()).await?;
        assert!(socket.next().await.unwrap()? == message);
        Ok(())
    });
}

#[test]
fn a_peer_that_vanishes_is_told() {
    each(|| async {
        let address = serve(|stream| async {
            drop(accept_async(stream).await?);
            Ok(())
        })
        .await?;
        let stream = TcpStream::connect(address).await?;
        let (mut socket, _) = client_async(format!("ws://{address}/"), stream).await?;
        let error = socket.next().await.unwrap().unwrap_err();
        assert!(
            matches!(error, Error::Protocol(_) | Error::Io(_)),
            "{error}"
        );
        Ok(())
    });
}
