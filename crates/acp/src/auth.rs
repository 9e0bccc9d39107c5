//! Logging in: the client runs this program again, in a terminal, and it becomes the CLI.

use oarlock_proto::acp::{AuthMethod, ClientCapabilities};
use oarlock_proto::jsonrpc::ErrorObject;

use crate::Settings;
use crate::context::Context;

/// The ways to log in that the client can offer.
pub(crate) fn methods(client: &ClientCapabilities, settings: &Settings) -> Vec<AuthMethod> {
    let _ = (client, settings);
    Vec::new()
}

/// `authenticate`: nothing to do here, since the client runs the method itself; a method that is not there is an error.
pub(crate) fn authenticate(context: &Context, method_id: &str) -> Result<(), ErrorObject> {
    let _ = context;
    Err(ErrorObject::invalid_params(format!("methodId: there is no method {method_id}")))
}

/// `logout`: the CLI forgets its login.
pub(crate) async fn logout(context: &Context) -> Result<(), ErrorObject> {
    let _ = context;
    Ok(())
}
