//! The choice of the model, its server and its key.

use crate::support::environment;
use rag_chat::{
    answerer::{Answerer, remote::Remote},
    models::{Choice, choose},
};

fn remote(choice: Choice) -> Remote {
    match choice.answerer {
        Answerer::Remote(remote) => remote,
        Answerer::Offline => panic!("offline"),
    }
}

#[test]
fn the_environment_chooses_and_a_name_overrules_it() {
    let none = environment(&[]);
    assert_eq!(choose(None, &none).unwrap().model.name, "offline");
    assert_eq!(choose(Some("offline-4k"), &none).unwrap().model.context_len, Some(4_096));
    let keys = environment(&[
        ("OPENAI_API_KEY", "a"),
        ("ANTHROPIC_API_KEY", "b"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/"),
    ]);
    let chosen = remote(choose(None, &keys).unwrap());
    assert_eq!((chosen.key.as_deref(), chosen.url.as_str()), (Some("a"), "https://api.openai.com/v1"));
    let chosen = remote(choose(Some("claude-haiku-5-5"), &keys).unwrap());
    assert_eq!((chosen.key.as_deref(), chosen.url.as_str()), (Some("b"), "http://127.0.0.1:1/v1"));
    assert_eq!(remote(choose(Some("ollama/tiny"), &keys).unwrap()).url, "http://localhost:11434/v1");
    let host = environment(&[("OLLAMA_HOST", "192.168.0.7")]);
    assert_eq!(remote(choose(Some("ollama/tiny"), &host).unwrap()).url, "http://192.168.0.7:11434/v1");
    let local = environment(&[
        ("RAG_CHAT_URL", "localhost:8000/v1"),
        ("RAG_CHAT_MODEL", "mine"),
        ("OPENAI_API_KEY", "a"),
    ]);
    let chosen = remote(choose(None, &local).unwrap());
    assert_eq!((chosen.model.as_str(), chosen.url.as_str()), ("mine", "http://localhost:8000/v1"));
    // The key of another provider is not sent to it.
    assert_eq!(chosen.key, None);
    assert!(!format!("{chosen:?}").contains("key"), "no key is printed");
}

#[test]
fn unusable_model_is_an_error_with_advice() {
    for (name, expected) in [
        ("gpt-5.4-mini", "Set OPENAI_API_KEY"),
        ("anthropic/new", "Set ANTHROPIC_API_KEY"),
        ("local/x", "Set RAG_CHAT_URL"),
        ("gpt-5.4-mimi", "Did you mean gpt-5.4-mini?"),
        ("offline-0k", "offline-Nk"),
        ("offline-", "offline-Nk"),
    ] {
        let error = choose(Some(name), &environment(&[])).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}
