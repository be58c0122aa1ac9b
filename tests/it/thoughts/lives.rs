//! Lives of conversations with thoughts, judged by a provider that remembers what it was sent.
