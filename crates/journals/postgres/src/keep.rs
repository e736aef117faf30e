//! Keeps a node connected to its server.

use crate::fault::describe;
use crate::session::{Session, connect};
use crate::shared::{Command, Connection, NodeShared};
use crate::{read, serve};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use wellspring_log::shared::SharedLogError;

/// Shortest and longest pause between connection attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Serves the node's logs over this session and later ones, until no handle is left.
pub(crate) async fn keep(
    node: &Arc<NodeShared>,
    first: Session,
    mut commands: UnboundedReceiver<Command>,
) {
    let mut session = Some(first);
    let mut pause = FIRST_PAUSE;
    loop {
        let reason = match session.take() {
            Some(session) => {
                pause = FIRST_PAUSE;
                match serve::serve(node, session, &mut commands).await {
                    serve::End::Lost(reason) => reason,
                    serve::End::NobodyAsks => return,
                }
            }
            None => {
                let connecting = connect(&node.options, node.tls.as_ref());
                let Some(made) = refusing(node, &mut commands, connecting).await else { return };
                match made {
                    Ok(made) => match read::check_anchors(node, &made).await {
                        Ok(()) => {
                            node.connected(made.durability.clone());
                            session = Some(made);
                            continue;
                        }
                        Err(error) => describe(&error),
                    },
                    Err(error) => error.to_string(),
                }
            }
        };
        node.disconnected(&reason);
        if refusing(node, &mut commands, tokio::time::sleep(pause)).await.is_none() {
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Performs an operation while refusing all commands. `None` if no handle is left.
async fn refusing<T>(
    node: &NodeShared,
    commands: &mut UnboundedReceiver<Command>,
    what: impl Future<Output = T>,
) -> Option<T> {
    let mut what = std::pin::pin!(what);
    loop {
        tokio::select! {
            done = &mut what => return Some(done),
            command = commands.recv() => {
                let reason = match &node.status().connection {
                    Connection::Lost { reason } => reason.clone(),
                    Connection::Connected => "the connection was lost".into(),
                };
                refuse(command?, reason);
            }
        }
    }
}

/// Refuses a command. An offer that was never sent never lands.
fn refuse(command: Command, reason: String) {
    match command {
        Command::Work(log) => log.disconnected(&reason),
        Command::Follow(_) => {}
        Command::Fetch { reply, .. } => {
            let _ = reply.send(Err(SharedLogError::Unavailable { reason }));
        }
        Command::FirstKept { reply, .. } => {
            let _ = reply.send(Err(SharedLogError::Unavailable { reason }));
        }
    }
}
