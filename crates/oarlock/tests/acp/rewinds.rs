//! Going back in a conversation.

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::Abilities;
use serde_json::json;

use crate::stage::Stage;
use crate::turns::text_of;

pub(crate) async fn caa_71_a_conversation_can_be_rewound(stage: Stage) -> Result<()> {
    let [one, two, three] = ["alpha", "omega", "gamma"].map(|word| stage.says(word, &format!("said {word}")));
    let (client, session) = stage.open(Abilities::Zed).await?;
    ensure!(text_of(&client, &session, &one).await? == "said alpha");
    let answer = client.prompt(&session, &two).await?;
    let id = answer.result()?["_meta"]["claudeCode"]["userMessageId"].as_str().context("no id")?.to_owned();

    let rewind = |id: &str| json!({"sessionId": session, "messageId": id});
    client.call("_session/rewind", json!({"sessionId": session})).await?.error(-32602)?;
    client.call("_session/rewind", rewind("00000000-0000-4000-8000-000000000000")).await?.error(-32602)?;
    let rewound = client.call("_session/rewind", rewind(&id)).await?.result()?.clone();
    ensure!(rewound["rewound"] == true && rewound["prefillText"] == two, "{rewound}");
    ensure!(text_of(&client, &session, &three).await? == "said gamma");
    let asked = stage.model.turn("gamma", 0, std::time::Duration::from_secs(5)).await?;
    let told = asked.body["messages"].to_string();
    ensure!(
        told.contains("said alpha") && !told.contains("said omega"),
        "the model has not forgotten: {told}"
    );
    stage.end(client).await?;
    stage.written("said gamma").await?;

    // It stays so. A loaded session tells the names of its prompts, and can be rewound while its CLI starts.
    let client = stage.agent(Abilities::Zed).await?;
    let params = json!({"sessionId": session, "cwd": stage.sandbox.work(), "mcpServers": []});
    client.call("session/load", params).await?.result()?;
    let text = client.picture(&session).text();
    ensure!(text == "said alphasaid gamma", "{text}");
    let chunk = client.update("user_message_chunk", |update| update["content"]["text"] == three).await?;
    let id = chunk["messageId"].as_str().context("no id")?.to_owned();
    let rewound = client.call("_session/rewind", rewind(&id)).await?.result()?.clone();
    ensure!(rewound["prefillText"] == three, "{rewound}");
    stage.end(client).await
}
