//! Authorities and certificates created for a test, and TLS clients that use them.

use crate::client::Client;
use crate::server::Server;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wellspring_patience::PATIENCE;

pub type TlsClient = Client<StreamOwned<ClientConnection, TcpStream>>;

/// An authority, with its certificate in a file.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub file: PathBuf,
}

/// A certificate and its key, in files.
pub struct Pair {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    pub fn new(dir: &Path, name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let file = dir.join(format!("{name}.pem"));
        std::fs::write(&file, params.self_signed(&key).unwrap().pem()).unwrap();
        Authority { issuer: Issuer::new(params, key), file }
    }

    /// A certificate for localhost, also usable by a client.
    pub fn issue(&self, dir: &Path, name: &str) -> Pair {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).unwrap();
        let secret = KeyPair::generate().unwrap();
        let pair = Pair {
            certificate: dir.join(format!("{name}.pem")),
            key: dir.join(format!("{name}.key")),
        };
        let pem = params.signed_by(&secret, &self.issuer).unwrap().pem();
        std::fs::write(&pair.certificate, pem).unwrap();
        std::fs::write(&pair.key, secret.serialize_pem()).unwrap();
        std::fs::set_permissions(&pair.key, std::fs::Permissions::from_mode(0o600)).unwrap();
        pair
    }
}

impl Pair {
    /// As arguments of `wellspring serve`.
    pub fn flags(&self) -> [&str; 4] {
        ["--tls-cert", text(&self.certificate), "--tls-key", text(&self.key)]
    }

    /// Replaces the files of another pair by these.
    pub fn replaces(&self, other: &Pair) {
        std::fs::rename(&self.key, &other.key).unwrap();
        std::fs::rename(&self.certificate, &other.certificate).unwrap();
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A folder with an authority, and a pair for the server.
pub struct Ground {
    pub dir: tempfile::TempDir,
    pub authority: Authority,
    pub pair: Pair,
}

impl Ground {
    pub fn new() -> Ground {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new(dir.path(), "authority");
        let pair = authority.issue(dir.path(), "server");
        Ground { dir, authority, pair }
    }

    pub fn start(&self, flags: &[&str]) -> Server {
        Server::start_with(&[&self.pair.flags()[..], flags].concat())
    }

    /// A client that trusts only this authority.
    pub fn client(&self, server: &Server) -> TlsClient {
        over_tls(server.address, config(&self.authority, None)).expect("a handshake")
    }
}

/// A configuration that trusts only this authority and presents this certificate.
pub fn config(authority: &Authority, shown: Option<&Pair>) -> ClientConfig {
    of_versions(authority, shown, rustls::DEFAULT_VERSIONS)
}

/// The same, for these versions of TLS.
pub fn of_versions(
    authority: &Authority,
    shown: Option<&Pair>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&authority.file).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    match shown {
        None => builder.with_no_client_auth(),
        Some(pair) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_file(&pair.certificate).unwrap()],
                PrivateKeyDer::from_pem_file(&pair.key).unwrap(),
            )
            .unwrap(),
    }
}

/// A connection after the handshake.
pub fn over_tls(address: SocketAddr, config: ClientConfig) -> io::Result<TlsClient> {
    let mut socket = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok(Client::over(StreamOwned::new(connection, socket)))
}
