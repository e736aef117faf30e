//! A cluster accessed through `krafka`.

mod faults;
mod producer;
mod reader;

use crate::cluster::{
    Cluster, Creation, NewTopic, OffsetRange, Producer, Reader, Retention, TopicDescription,
};
use crate::connection::{ConnectionSettings, Sasl, SaslMechanism};
use crate::fault::{Fault, FaultKind};
use faults::fault_of;
use krafka::admin::ConfigResource;
use krafka::auth::{AuthConfig, TlsConfig};
use krafka::consumer::{Consumer, IsolationLevel};
use krafka::error::{ErrorCode, KrafkaError};
use krafka::{Kafka, admin};
use producer::{IdempotentProducer, TransactionalProducer};
use reader::PartitionReader;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Timeout of a query to the cluster.
const ASK_WITHIN: Duration = Duration::from_secs(30);

/// Timeout of a single request to a broker before it is retried.
const REQUEST_WITHIN: Duration = Duration::from_secs(8);

/// A batch that is not acknowledged by then is in doubt. This gives a broker time to come back.
const DELIVER_WITHIN: Duration = Duration::from_secs(20);

/// Brokers abort a transaction that is open for longer: readers of committed records wait at most
/// this long for a producer that is gone. At least [`DELIVER_WITHIN`].
const TRANSACTION_ENDS_AFTER: Duration = Duration::from_secs(30);

/// A connection to a cluster. Everything created from it shares its thread and its sockets.
pub struct KafkaCluster {
    link: Arc<Link>,
    /// Determines where partitions end.
    offsets: Consumer,
}

/// The client and its thread.
struct Link {
    kafka: Kafka,
    runtime: Runtime,
}

impl Link {
    /// Waits for a call, with a timeout.
    fn within<T>(
        &self,
        limit: Duration,
        what: &str,
        call: impl Future<Output = Result<T, KrafkaError>>,
    ) -> Result<T, Fault> {
        let bounded = async { tokio::time::timeout(limit, call).await };
        match self.runtime.block_on(bounded) {
            Ok(answer) => answer.map_err(|error| fault_of(what, &error)),
            Err(_) => {
                let detail = format!("{what}: no response within {} s", limit.as_secs());
                Err(Fault::new(FaultKind::Unavailable, detail))
            }
        }
    }
}

fn sasl_of(sasl: &Sasl) -> AuthConfig {
    let (user, password) = (sasl.user.as_str(), sasl.password.as_str());
    match sasl.mechanism {
        SaslMechanism::Plain => AuthConfig::sasl_plain(user, password),
        SaslMechanism::ScramSha256 => AuthConfig::sasl_scram_sha256(user, password),
        SaslMechanism::ScramSha512 => AuthConfig::sasl_scram_sha512(user, password),
    }
}

fn security_of(settings: &ConnectionSettings) -> Result<AuthConfig, Fault> {
    let tls = match &settings.tls {
        None => None,
        Some(tls) => Some(match &tls.ca_file {
            None => TlsConfig::new().with_native_roots(),
            Some(path) => {
                let pem = std::fs::read(path).map_err(|error| {
                    let detail = format!("{} cannot be read: {error}", path.display());
                    Fault::new(FaultKind::Unusable, detail)
                })?;
                TlsConfig::new().with_ca_cert_pem(pem)
            }
        }),
    };
    Ok(match (&settings.sasl, tls) {
        (None, None) => AuthConfig::plaintext(),
        (None, Some(tls)) => AuthConfig::ssl(tls),
        (Some(sasl), None) => sasl_of(sasl),
        (Some(sasl), Some(tls)) => sasl_of(sasl).with_tls(tls),
    })
}

impl KafkaCluster {
    /// Connects.
    ///
    /// # Errors
    /// [`FaultKind::Unavailable`] if no broker responds; [`FaultKind::Forbidden`] if the brokers
    /// refuse the credentials.
    pub fn connect(settings: &ConnectionSettings) -> Result<KafkaCluster, Fault> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("kafka").enable_all().build();
        let runtime = runtime.map_err(|error| {
            Fault::new(FaultKind::Unavailable, format!("cannot create a thread for Kafka: {error}"))
        })?;
        let security = security_of(settings)?;
        let opened = async {
            let kafka = Kafka::builder(settings.brokers.join(","))
                .client_id(&settings.client_id)
                .security(security)
                .connect_timeout(REQUEST_WITHIN)
                .request_timeout(REQUEST_WITHIN)
                .allow_auto_create_topics(false)
                .connect()
                .await?;
            let offsets = kafka
                .consumer_without_group()
                .isolation_level(IsolationLevel::ReadUncommitted)
                .build()
                .await?;
            Ok((kafka, offsets))
        };
        let what = format!("connecting to {}", settings.brokers.join(","));
        let bounded = async { tokio::time::timeout(ASK_WITHIN, opened).await };
        let (kafka, offsets) = runtime
            .block_on(bounded)
            .map_err(|_| Fault::new(FaultKind::Unavailable, format!("{what}: no response")))?
            .map_err(|error: KrafkaError| fault_of(&what, &error))?;
        Ok(KafkaCluster { link: Arc::new(Link { kafka, runtime }), offsets })
    }

    fn settings_of(&self, topic: &str) -> Result<Vec<(String, String)>, Fault> {
        let what = format!("reading the settings of the topic {topic}");
        let resource = ConfigResource::topic(topic);
        let admin = self.link.kafka.admin();
        let asked = admin.describe_configs([resource.clone()], Default::default());
        let mut answers = self.link.within(ASK_WITHIN, &what, asked)?;
        let entries = answers
            .remove(&resource)
            .ok_or_else(|| {
                Fault::new(FaultKind::Unusable, format!("{what}: missing in the response"))
            })?
            .map_err(|error| fault_of(&what, &error))?;
        let text = |entry: admin::ConfigEntry| {
            Some((entry.name.clone(), entry.config_value().as_str()?.to_owned()))
        };
        Ok(entries.into_iter().filter_map(text).collect())
    }
}

/// The current id of a topic.
async fn topic_id(kafka: &Kafka, topic: &str) -> Result<[u8; 16], KrafkaError> {
    let mut answers = kafka.admin().describe_topics([topic], Default::default()).await?;
    let described = answers.remove(topic);
    Ok(described.unwrap_or_else(|| Err(KrafkaError::unknown_topic(topic)))?.topic_id)
}

impl Cluster for KafkaCluster {
    fn id(&self) -> Result<String, Fault> {
        let admin = self.link.kafka.admin();
        let asked = admin.describe_cluster(Default::default());
        Ok(self.link.within(ASK_WITHIN, "asking for the cluster's id", asked)?.cluster_id)
    }

    fn topic(&self, name: &str) -> Result<TopicDescription, Fault> {
        let what = format!("describing the topic {name}");
        let admin = self.link.kafka.admin();
        let asked = admin.describe_topics([name], Default::default());
        let mut answers = self.link.within(ASK_WITHIN, &what, asked)?;
        let described = answers
            .remove(name)
            .ok_or_else(|| {
                Fault::new(FaultKind::NoTopic, format!("the topic {name} does not exist"))
            })?
            .map_err(|error| fault_of(&what, &error))?;
        let settings = self.settings_of(name)?;
        let setting = |key: &str| settings.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        let wrong = |key: &str| {
            Fault::new(FaultKind::Unusable, format!("{what}: the cluster does not report {key}"))
        };
        let max: Option<usize> = setting("max.message.bytes").and_then(|text| text.parse().ok());
        let kept_ms: Option<i64> = setting("retention.ms").and_then(|text| text.parse().ok());
        let policy = setting("cleanup.policy").ok_or_else(|| wrong("cleanup.policy"))?;
        let is_compacted = !policy.split(',').any(|word| word.trim() == "delete");
        let retention = match u64::try_from(kept_ms.ok_or_else(|| wrong("retention.ms"))?) {
            Ok(ms) if !is_compacted => Retention::Limited(Duration::from_millis(ms)),
            _ => Retention::Unlimited,
        };
        Ok(TopicDescription {
            id: described.topic_id,
            partitions: i32::try_from(described.partitions.len())
                .map_err(|_| wrong("partitions"))?,
            replicas: described.partitions.iter().map(|p| p.replicas.len()).min().unwrap_or(0),
            max_message_bytes: max.ok_or_else(|| wrong("max.message.bytes"))?,
            retention,
            is_compacted,
        })
    }

    fn create_topic(&self, topic: &NewTopic) -> Result<Creation, Fault> {
        let what = format!("creating the topic {}", topic.name);
        let (partitions, replicas) = (topic.partitions.unwrap_or(-1), topic.replicas.unwrap_or(-1));
        let mut new = admin::NewTopic::new(&topic.name, partitions, replicas)
            .map_err(|error| fault_of(&what, &error))?;
        for (key, value) in &topic.settings {
            new = new.with_config(key, value);
        }
        let admin = self.link.kafka.admin();
        let asked = admin.create_topics([new], Default::default());
        let mut answers = self.link.within(ASK_WITHIN, &what, asked)?;
        match answers.remove(&topic.name) {
            Some(Ok(())) => Ok(Creation::Created),
            Some(Err(KrafkaError::Broker { code: ErrorCode::TopicAlreadyExists, .. })) => {
                Ok(Creation::Existed)
            }
            Some(Err(error)) => Err(fault_of(&what, &error)),
            None => {
                Err(Fault::new(FaultKind::Unusable, format!("{what}: missing in the response")))
            }
        }
    }

    fn offsets(&self, topic: &str, partition: i32) -> Result<OffsetRange, Fault> {
        let what = format!("determining the end of partition {partition} of {topic}");
        let asked = self.offsets.fetch_watermarks(topic, partition);
        let (first, end) = self.link.within(ASK_WITHIN, &what, asked)?;
        Ok(OffsetRange { first, end })
    }

    fn transactional_producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, Fault> {
        TransactionalProducer::open(&self.link, transactional_id)
            .map(|producer| Box::new(producer) as Box<dyn Producer>)
    }

    fn idempotent_producer(&self) -> Result<Box<dyn Producer>, Fault> {
        IdempotentProducer::open(&self.link).map(|producer| Box::new(producer) as Box<dyn Producer>)
    }

    fn reader(&self, topic: &str, starts: &[(i32, i64)]) -> Result<Box<dyn Reader>, Fault> {
        for (partition, start) in starts {
            let range = self.offsets(topic, *partition)?;
            if !(range.first..=range.end).contains(start) {
                let detail = format!(
                    "partition {partition} of {topic} holds offsets {} to {}, not the requested {start}",
                    range.first, range.end
                );
                return Err(Fault::new(FaultKind::OutOfRange, detail));
            }
        }
        PartitionReader::open(&self.link, topic, starts)
            .map(|reader| Box::new(reader) as Box<dyn Reader>)
    }
}
