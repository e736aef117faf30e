//! The settings of a host, section by section, and what it needs to know of its faces before it
//! opens.

use crate::access::config::AccessConfig;
use crate::access::cors_origins::Cors;
use crate::access::foreign_page::Pages;
use crate::access::jwks_source::ForeignSettings;
use crate::audit::AuditConfig;
use crate::backup::BackupConfig;
use crate::cluster::ClusterConfig;
use crate::http::config::HttpConfig;
use crate::http::face::Surroundings;
use crate::ingest::IngestConfig;
use crate::kept_types::KeptTypes;
use crate::limits::LimitConfig;
use crate::log_lines;
use crate::node::StorageConfig;
use crate::otlp::{Otlp, OtlpConfig};
use crate::settings::{ProcessConfig, sections};
use crate::setup::SetupError;
use crate::subjects::SubjectConfig;
use crate::tls::{Files, TlsConfig};

sections! {
    /// The settings of a host: all but those of its faces.
    HostConfig from HostConfigArgs:
    process: ProcessConfig,
    storage: StorageConfig,
    cluster: ClusterConfig,
    http: HttpConfig,
    tls: TlsConfig,
    access: AccessConfig,
    audit: AuditConfig,
    limits: LimitConfig,
    ingest: IngestConfig,
    otlp: OtlpConfig,
    backup: BackupConfig,
    subjects: SubjectConfig,
}

/// What the settings of its faces mean for a host.
#[derive(Debug, Default)]
pub struct FaceTerms {
    /// The events that only faces write.
    pub kept: KeptTypes,
    /// The URLs by which clients know the server because of a face.
    pub own_urls: Vec<String>,
    /// All settings of the server as a file of settings has them, for its admins; without secrets.
    pub settings: String,
}

impl HostConfig {
    /// Checks every section, and dependencies between them.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub fn check(&self, faces: &FaceTerms) -> Result<(), SetupError> {
        let HostConfig {
            process,
            storage,
            cluster,
            http,
            tls,
            access,
            ingest,
            otlp,
            backup,
            subjects,
            ..
        } = self;
        storage.check()?;
        let files = Files::of(tls)?;
        let addresses = [Some(process.address()?), process.second_address()?];
        let open_to_others = addresses.iter().flatten().find(|at| !at.ip().is_loopback());
        if let (Some(address), None, false) = (open_to_others, &files, process.insecure) {
            return Err(format!(
                "--listen {address} can be reached from other machines, and without TLS others \
                 could read and change the traffic; set --tls-cert and --tls-key (and create \
                 an account: `wellspring user add NAME --role admin --data {}`), or listen on \
                 127.0.0.1, or set --insecure if the network is private",
                process.data.display()
            )
            .into());
        }
        process.check()?;
        cluster.check(process, files.is_some())?;
        if cluster.is_shared() && storage.sync()? != wellspring_log::Sync::Always {
            return Err("sync must be `always` with --journal: the journal decides when an \
                        append is durable"
                .into());
        }
        log_lines::level(&process.log_level)?;
        http.check()?;
        ingest.check(&faces.kept)?;
        access.check()?;
        otlp.check()?;
        backup.check(cluster.is_shared(), &process.data)?;
        subjects.check(&process.data, &backup.backup_to)?;
        Otlp::open(otlp)?;
        ForeignSettings::of(access)?;
        self.pages(faces)?;
        Ok(())
    }

    /// The settings around a face.
    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { process: &self.process, has_tls: self.tls.is_on() }
    }

    /// The pages that count as the server's own.
    ///
    /// # Errors
    /// A sentence about `cors_origins` or `own_hosts`.
    pub(crate) fn pages(&self, faces: &FaceTerms) -> Result<Pages, SetupError> {
        let cors = Cors::of(&self.access.cors_origins)?;
        let own_urls: Vec<&str> = faces.own_urls.iter().map(String::as_str).collect();
        Pages::of(&self.process.own_hosts, &own_urls, cors)
    }
}
