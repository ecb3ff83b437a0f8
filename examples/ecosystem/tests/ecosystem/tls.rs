//! TLS over wakerun's streams, and HTTP over that.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use futures_rustls::client::TlsStream as ClientStream;
use futures_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use futures_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use futures_rustls::server::TlsStream as ServerStream;
use futures_rustls::{TlsAcceptor, TlsConnector};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper::{Request, Response};
use wakerun::hyper::Io;
use wakerun::net::TcpStream;
use wakerun::task::JoinSet;

use super::{Result, each, pattern, serve};

/// Both ends' configurations, with a certificate for `localhost` that signs itself.
fn ends() -> Result<(TlsAcceptor, TlsConnector)> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let client = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((Arc::new(server).into(), Arc::new(client).into()))
}

async fn connect(connector: &TlsConnector, address: SocketAddr) -> Result<ClientStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost")?;
    Ok(connector.connect(name, stream).await?)
}

#[test]
fn many_clients_send_megabytes_and_end_in_order() {
    each(|| async {
        let (acceptor, connector) = ends()?;
        let address = serve(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let stream: ServerStream<TcpStream> = acceptor.accept(stream).await?;
                let (mut read, mut write) = futures_lite::io::split(stream);
                futures_lite::io::copy(&mut read, &mut write).await?;
                write.close().await?;
                Ok(())
            }
        })
        .await?;
        let mut clients = JoinSet::new();
        for n in 0..8 {
            let connector = connector.clone();
            clients.spawn(async move {
                let stream = connect(&connector, address).await?;
                let data = pattern(200_000 + n);
                let (mut read, mut write) = futures_lite::io::split(stream);
                let sent = data.clone();
                let sending = wakerun::spawn(async move {
                    write.write_all(&sent).await?;
                    write.close().await
                });
                let mut back = Vec::new();
                read.read_to_end(&mut back).await?;
                sending.await??;
                assert!(back == data);
                Result::Ok(())
            });
        }
        clients.join_all().await.into_iter().collect()
    });
}

#[test]
fn a_certificate_that_is_not_trusted_or_not_for_the_name_is_refused() {
    each(|| async {
        let (acceptor, connector) = ends()?;
        let (_, stranger) = ends()?;
        let address = serve(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                acceptor.accept(stream).await?;
                Ok(())
            }
        })
        .await?;
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("elsewhere")?;
        let error = connector.connect(name, stream).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(connect(&stranger, address).await.is_err());
        connect(&connector, address).await?;
        Ok(())
    });
}

#[test]
fn an_end_without_notice_is_told() {
    each(|| async {
        let (acceptor, connector) = ends()?;
        let address = serve(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let mut stream = acceptor.accept(stream).await?;
                stream.write_all(b"half").await?;
                stream.flush().await?;
                // The connection ends, and TLS has not been told.
                Ok(())
            }
        })
        .await?;
        let mut stream = connect(&connector, address).await?;
        let mut text = String::new();
        let error = stream.read_to_string(&mut text).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        Ok(())
    });
}

#[test]
fn http_over_tls() {
    each(|| async {
        let (acceptor, connector) = ends()?;
        let address = serve(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let stream = Io::new(acceptor.accept(stream).await?);
                let echo = service_fn(|request: Request<hyper::body::Incoming>| async {
                    hyper::Result::Ok(Response::new(request.into_body()))
                });
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(stream, echo)
                    .await?;
                Ok(())
            }
        })
        .await?;
        let stream = Io::new(connect(&connector, address).await?);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
        wakerun::spawn(connection);
        for len in [0, 7, 300_000] {
            let data = pattern(len);
            let request = Request::post("/").body(Full::<bytes::Bytes>::from(data.clone()))?;
            sender.ready().await?;
            let response = sender.send_request(request).await?;
            assert!(response.into_body().collect().await?.to_bytes() == data);
        }
        Ok(())
    });
}
