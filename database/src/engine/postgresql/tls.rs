//! Transport security of a connection to PostgreSQL: the modes of `tls.mode` over rustls, and a guard that never lets a
//! server have the password in clear text where nobody has proved who it is.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crds::target::TlsMode;
use futures::future::BoxFuture;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// Makes the TLS session of one connection.
pub(super) struct Tls {
    connector: tokio_rustls::TlsConnector,
    name: ServerName<'static>,
    verified: bool,
}

impl Tls {
    /// For a host and a mode; `authority` is PEM, the public ones without it.
    pub(super) fn new(mode: TlsMode, name: &str, authority: Option<&[u8]>) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(roots(authority)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|e| format!("ca.crt cannot be used: {e}"))?;
        let verifier: Arc<dyn ServerCertVerifier> = match mode {
            TlsMode::VerifyCa => Arc::new(ChainOnly {
                verifier,
                provider: Arc::clone(&provider),
            }),
            TlsMode::Verify | TlsMode::Disabled => verifier,
        };
        let configuration = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Self {
            connector: tokio_rustls::TlsConnector::from(Arc::new(configuration)),
            name: ServerName::try_from(name.to_owned())
                .map_err(|_| format!("`{name}` cannot be the name of a certificate"))?,
            verified: mode == TlsMode::Verify,
        })
    }
}

fn roots(authority: Option<&[u8]>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(pem) = authority else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|e| format!("ca.crt is not PEM: {e}"))?;
        roots
            .add(certificate)
            .map_err(|e| format!("ca.crt cannot be used: {e}"))?;
    }
    if roots.is_empty() {
        return Err("ca.crt holds no certificate".to_owned());
    }
    Ok(roots)
}

/// Verifies the chain and takes whatever name the certificate has (`VerifyCa`).
#[derive(Debug)]
struct ChainOnly {
    verifier: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ChainOnly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let answer =
            self.verifier
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match answer {
            // The name is looked at last: with this error the chain is good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

impl TlsConnect<Guarded<TcpStream>> for Tls {
    type Stream = Guarded<tokio_rustls::client::TlsStream<Guarded<TcpStream>>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Stream>>;

    fn connect(self, stream: Guarded<TcpStream>) -> Self::Future {
        Box::pin(async move {
            let stream = self.connector.connect(self.name, stream).await?;
            Ok(Guarded::new(stream, !self.verified))
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Guarded<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

/// Bytes of a server's first answer that say which kind of login it wants: `R`, length, kind.
const HEAD: usize = 9;
/// A login in clear text.
const CLEAR_TEXT: [u8; 4] = 3_u32.to_be_bytes();

/// A stream that breaks when the server asks for the password itself instead of a proof of it.
pub(super) struct Guarded<S> {
    inner: S,
    head: Vec<u8>,
    armed: bool,
}

impl<S> Guarded<S> {
    /// `armed`: a login in clear text is refused.
    pub(super) fn new(inner: S, armed: bool) -> Self {
        Self {
            inner,
            head: Vec::with_capacity(HEAD),
            armed,
        }
    }

    fn look(&mut self, new: &[u8]) -> io::Result<()> {
        if !self.armed || self.head.len() == HEAD {
            return Ok(());
        }
        let missing = HEAD - self.head.len();
        self.head.extend(new.iter().take(missing));
        if self.head.len() == HEAD && self.head[0] == b'R' && self.head[5..] == CLEAR_TEXT {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the server asks for the password in clear text: use tls.mode Verify, or scram-sha-256 in its pg_hba.conf",
            ));
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        match read {
            Poll::Ready(Ok(())) => Poll::Ready(self.look(&buf.filled()[before..])),
            other => other,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    async fn answered(bytes: &[u8], armed: bool) -> io::Result<usize> {
        let mut stream = Guarded::new(bytes, armed);
        let mut sink = Vec::new();
        let mut buffer = [0; 4];
        loop {
            match stream.read(&mut buffer).await? {
                0 => return Ok(sink.len()),
                read => sink.extend_from_slice(&buffer[..read]),
            }
        }
    }

    #[tokio::test]
    async fn a_password_is_never_given_in_clear_text_to_a_server_that_nobody_verified() {
        let clear = b"R\0\0\0\x08\0\0\0\x03";
        let scram = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0";
        let error = answered(clear, true).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(answered(clear, false).await.unwrap(), clear.len());
        assert_eq!(answered(scram, true).await.unwrap(), scram.len());
        // Further on the same bytes are data.
        let later = [scram.as_slice(), clear].concat();
        assert_eq!(answered(&later, true).await.unwrap(), later.len());
    }

    #[test]
    fn an_authority_that_is_none_is_said_so() {
        for (pem, said) in [
            (&b""[..], "holds no certificate"),
            (b"-----BEGIN CERTIFICATE-----\n", "ca.crt"),
        ] {
            let error = Tls::new(TlsMode::Verify, "db.test", Some(pem)).err().unwrap();
            assert!(error.contains(said), "{error}");
        }
        assert!(Tls::new(TlsMode::Verify, "db.test", None).is_ok());
        assert!(Tls::new(TlsMode::Verify, "not a name", None).is_err());
    }
}
