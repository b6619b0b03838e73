//! HTTPS with a certificate of the server's own making.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate authority that signed one certificate: its key is forgotten.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    /// The certificate of the authority, for clients.
    pub(crate) ca_pem: Arc<str>,
}

/// What clients of a server on this machine may call it.
const NAMES: [&str; 7] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// A bearer token that nobody can guess: 32 random bytes as hexadecimal digits.
///
/// # Errors
///
/// The system gives no random numbers.
pub fn random_token() -> io::Result<String> {
    let random = ring::default_provider().secure_random;
    let half = || {
        let mut bytes = [0; 16];
        random
            .fill(&mut bytes)
            .map_err(|_| io::Error::other("the system gives no random numbers"))?;
        Ok::<_, io::Error>(u128::from_be_bytes(bytes))
    };
    Ok(format!("{:032x}{:032x}", half()?, half()?))
}

// === impl Tls ===

impl Tls {
    /// Makes an authority, and a certificate for a server on this address.
    ///
    /// # Errors
    ///
    /// The system gives no random numbers.
    pub(crate) fn generate(address: SocketAddr) -> io::Result<Self> {
        let authority = authority().map_err(io::Error::other)?;
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = server_params(address)
            .and_then(|params| params.signed_by(&key, &authority))
            .map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                let chain = vec![certificate.der().clone()];
                builder.with_no_client_auth().with_single_cert(chain, key)
            })
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            ca_pem: authority.pem().into(),
        })
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name = named("homeostat-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

fn server_params(address: SocketAddr) -> Result<CertificateParams, rcgen::Error> {
    let mut names: Vec<String> = NAMES.map(str::to_owned).to_vec();
    let ip = address.ip();
    if !ip.is_unspecified() && !names.contains(&ip.to_string()) {
        names.push(ip.to_string());
    }
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = named("homeostat-apiserver");
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}
