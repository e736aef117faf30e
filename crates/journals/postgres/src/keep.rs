//! A node has its server, or tries again and again to have it.

use crate::fault::describe;
use crate::session::{Session, connect};
use crate::shared::{Command, Connection, NodeShared};
use crate::{read, serve};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use wellspring_log::shared::SharedLogError;

/// Between attempts to connect: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Serves the node's logs over this session and those after it, until nobody is left who asks.
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

/// Does something, and meanwhile says no to whatever is asked. `None` if nobody is left who asks.
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
                    Connection::Connected => "the connection is lost".into(),
                };
                refuse(command?, reason);
            }
        }
    }
}

/// Says no. What was never sent never comes to stand.
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
