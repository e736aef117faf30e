//! Hosts and servers for tests: settings from flags, data in a folder of the test, no socket.

use crate::access::Gate;
use crate::access::Needs;
use crate::cluster::ClusterKey;
use crate::config::{FaceTerms, HostConfig};
use crate::http::Host;
use crate::http::contract::Contract;
use crate::http::face::{BoundFace, Declaration, Face};
use crate::http::routes::{Route, Routes, Scope};
use crate::http::server::Server;
use crate::kept_types::KeptTypes;
use crate::node::Node;
use crate::serve::open::{OpenServer, open_with_key};
use crate::settings::{NoSettings, Origins, Section};
use crate::setup::SetupError;
use clap::{Args as _, Command, FromArgMatches as _};
use std::path::Path;
use std::sync::Arc;
use wellspring_log::Clock;

/// The settings of a host and of a face, from flags.
fn parsed<S: Section>(flags: &[&str]) -> Result<(HostConfig, S), SetupError> {
    let words = ["x"].iter().chain(flags);
    let command = <HostConfig as Section>::Args::augment_args(Command::new("x"));
    let command = S::Args::augment_args(command);
    let matches = command.clone().try_get_matches_from(words).map_err(|e| e.to_string())?;
    let host = <HostConfig as Section>::Args::from_arg_matches(&matches);
    let face = S::Args::from_arg_matches(&matches);
    let origins = Origins::of(&command, &matches);
    let host = HostConfig::merge(host.map_err(|e| e.to_string())?, Default::default());
    let face = S::merge(face.map_err(|e| e.to_string())?, Default::default());
    host.check(&FaceTerms::default()).map_err(|what| origins.explain(what.to_string()))?;
    Ok((host, face))
}

/// The settings of a face and of the host around it.
///
/// # Errors
/// A sentence about the first invalid setting.
pub fn settings_of<F: Face>(flags: &[&str]) -> Result<(HostConfig, F::Settings), SetupError> {
    let (host, face) = parsed::<F::Settings>(flags)?;
    F::check(&face, host.surroundings())?;
    Ok((host, face))
}

impl HostConfig {
    /// The settings that these flags give.
    pub fn for_tests(flags: &[&str]) -> HostConfig {
        HostConfig::loaded(flags).expect("flags that are right")
    }

    /// The settings that these flags give, or what is wrong with them.
    pub fn loaded(flags: &[&str]) -> Result<HostConfig, SetupError> {
        parsed::<NoSettings>(flags).map(|(host, _)| host)
    }

    /// Its logs.
    pub fn node(&self, clock: Arc<dyn Clock>) -> Node {
        Node::open(&self.process.data, &self.storage, self.ingest.batcher(), clock, None)
            .expect("logs that open")
    }

    /// Its gate.
    pub fn gate(&self, clock: Arc<dyn Clock>, node: &Node) -> Gate {
        let pages = self.pages(&FaceTerms::default()).expect("right settings");
        let accounts = crate::access::attach(node).expect("accounts");
        Gate::open(&self.process, &self.access, pages, clock, accounts, None).expect("a gate")
    }
}

/// The flags of a server over a data folder.
fn flags_over<'a>(data: &'a Path, flags: &[&'a str]) -> Vec<&'a str> {
    [&["--data", data.to_str().expect("a path"), "--threads", "1"], flags].concat()
}

/// A host without faces over this data folder and with these flags. It never stops.
pub fn host(data: &Path, flags: &[&str]) -> Arc<Host> {
    host_with(data, flags, Routes::new(&[], |_| false, false))
}

/// A host with these routes, without handlers.
pub fn host_with(data: &Path, flags: &[&str], routes: Routes) -> Arc<Host> {
    host_of(data, flags, routes, None)
}

/// A host with these routes, without handlers, as a node of the cluster with this key.
pub fn host_of(
    data: &Path,
    flags: &[&str],
    routes: Routes,
    key: Option<Arc<ClusterKey>>,
) -> Arc<Host> {
    let config = HostConfig::for_tests(&flags_over(data, flags));
    let opened = open_with_key(config, None, FaceTerms::default(), routes, key);
    let (host, ending) = opened.expect("a host that opens").apart();
    // Without its sender the receivers would see the server stop.
    std::mem::forget(ending);
    host
}

/// Routes of these methods and paths, with what they need.
pub fn routes(rows: &[(&'static str, &'static str, Needs)]) -> Routes {
    let route = |&(method, path, needs)| -> &'static Route {
        let contract = Contract::new(&[]);
        Box::leak(Box::new(Route { method, path, scope: Scope::Node, needs, what: "", contract }))
    };
    let declared = Declaration {
        name: "test",
        routes: rows.iter().map(route).collect(),
        operations: &[],
        reserved: &[],
        discovery: &[],
        problems: &[],
        log_aliases: &[],
        render: Into::into,
    };
    Routes::new(Box::leak(Box::new([declared])), |_| false, true)
}

/// A server with one face over this data folder and with these flags. It never stops.
pub fn server<F: Face>(data: &Path, flags: &[&str]) -> Arc<Server> {
    server_of::<F>(data, flags, None)
}

/// A server with one face, as a node of the cluster with this key. It never stops.
pub fn server_of<F: Face>(
    data: &Path,
    flags: &[&str],
    key: Option<Arc<ClusterKey>>,
) -> Arc<Server> {
    let opened = open_server::<F>(data, flags, key);
    std::mem::forget(opened.stop);
    opened.server
}

/// A server with one face, to be served.
pub(crate) fn open_server<F: Face>(
    data: &Path,
    flags: &[&str],
    key: Option<Arc<ClusterKey>>,
) -> OpenServer {
    let (config, settings) = settings_of::<F>(&flags_over(data, flags)).expect("right settings");
    let declared: &'static [Declaration] = Box::leak(Box::new([Declaration::of::<F>()]));
    let reserved = |word: &str| {
        let mut of_routes =
            F::ROUTES.iter().filter_map(|served| served.route.path.split('/').nth(1));
        F::RESERVED.contains(&word) || of_routes.any(|first| first == word)
    };
    let kept = KeptTypes::new(F::kept_events(&settings));
    let terms = FaceTerms { kept, ..FaceTerms::default() };
    let routes = Routes::new(declared, reserved, true);
    let opened = open_with_key(config, None, terms, routes, key);
    let opened = opened.expect("a host that opens");
    let face = F::open(settings, &opened.host).expect("a face that opens");
    opened.with(vec![BoundFace::new(face)])
}
