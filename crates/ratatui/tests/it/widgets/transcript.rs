//! The transcript: its content, and each partial view as a part of the whole.

use context_window::{Conversation, Message, ToolCall};
use context_window_ratatui::{Move, Theme, Transcript, TranscriptRemark, TranscriptState};
use ratatui_core::{buffer::Buffer, layout::Rect, text::Line, widgets::StatefulWidget};

fn remark(after: usize, text: &str, is_error: bool) -> TranscriptRemark {
    TranscriptRemark { after, text: text.into(), is_error }
}

/// Returns the drawn lines without trailing blanks.
fn drawn(transcript: Transcript<'_>, width: u16, height: u16, state: &mut TranscriptState) -> Vec<String> {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    transcript.with_theme(Theme::plain()).render(area, &mut buffer, state);
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned()).collect()
}

fn log() -> Conversation {
    let mut log = Conversation::from([
        Message::system("Be brief."),
        Message::user("How long do refunds take, and may I have one without the bill?"),
        Message::assistant("").with_tool_calls([ToolCall::new("c1", "look", "{}")]),
        Message::tool("c1", "5 days"),
        Message::assistant("5 days.\n\nYou need the bill."),
    ]);
    log.start_fresh();
    log.push(Message::user("And \u{1b}[2Jpostage?"));
    log
}

#[test]
fn transcript_shows_messages_and_compactions() {
    let remarks =
        [remark(0, "welcome", false), remark(6, "saved", false), remark(7, "the server is away", true)];
    let log = log();
    let transcript = Transcript::new(&log).with_remarks(&remarks).with_reply("", "Four");
    let lines = drawn(transcript, 40, 24, &mut TranscriptState::default());
    let expected = [
        "",
        "· welcome",
        "",
        "you  m1, archived",
        "  How long do refunds take, and may I",
        "  have one without the bill?",
        "",
        "answer  m4, archived",
        "  5 days.",
        "",
        "  You need the bill.",
        "",
        "── Started fresh: 5 messages archived [+]",
        "",
        "· saved",
        "",
        "you  m5",
        "  And ?[2Jpostage?",
        "",
        "! the server is away",
        "",
        "  Four",
        "",
        "",
    ];
    let cut: Vec<String> = expected.iter().map(|line| line.chars().take(40).collect()).collect();
    assert_eq!(lines[..12], cut[..12]);
    assert!(lines[12].starts_with("── Started fresh: 4 messages archiv"), "{}", lines[12]);
    assert_eq!(lines[13..], cut[13..]);
    // Reasoning is shown until the answer begins.
    let thinking =
        drawn(Transcript::new(&log).with_reply("Hm.", ""), 40, 30, &mut TranscriptState::default());
    assert!(thinking.contains(&"  Hm.".to_owned()), "{thinking:?}");
}

#[test]
fn every_part_is_a_part_of_the_whole() {
    let (log, remarks) = (log(), [remark(2, &"a long remark ".repeat(20), false), remark(7, "end", true)]);
    let transcript = Transcript::new(&log).with_remarks(&remarks).with_reply("", "On its way");
    for width in [0, 1, 9, 20, 37, 80] {
        let whole = drawn(transcript, width, 200, &mut TranscriptState::default());
        let end = whole.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        for height in [0, 1, 2, 5, 11] {
            let mut state = TranscriptState::default();
            for _ in 0..60 {
                let part = drawn(transcript, width, height, &mut state);
                if width >= 9 {
                    let last = end - state.below();
                    assert_eq!(
                        part,
                        whole[last - usize::from(height)..last],
                        "{width} x {height}, {}",
                        state.below()
                    );
                }
                state.apply_move(Move::Up);
            }
            state.apply_move(Move::First);
            let first = drawn(transcript, width, height, &mut state);
            assert!(width < 9 || first == whole[..usize::from(height)], "the beginning");
            // Scrolling beyond the end has no effect: one step back moves by one step.
            let below = state.below();
            state.apply_move(Move::PageUp);
            drawn(transcript, width, height, &mut state);
            assert_eq!(state.below(), below);
            state.apply_move(Move::Down);
            assert_eq!(state.below(), below.saturating_sub(1));
            state.apply_move(Move::Last);
            assert_eq!(state.below(), 0);
        }
    }
}

#[test]
fn answers_are_drawn_by_the_application() {
    fn loud(text: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        let line =
            |line: &str| Line::styled(format!("{columns} {}\u{1b}[2J", line.to_uppercase()), theme.heading);
        text.lines().map(line).collect()
    }
    let log = log();
    let transcript = Transcript::new(&log).with_reply("", "Four").with_answers(loud);
    let lines = drawn(transcript, 40, 16, &mut TranscriptState::default()).join("\n");
    assert!(lines.contains("\n  38 5 DAYS.?[2J\n"), "{lines}");
    assert!(lines.ends_with("  38 FOUR?[2J"), "what is on its way too: {lines}");
    assert!(lines.contains("How long do refunds take"), "what the user said is drawn as it is: {lines}");
}
