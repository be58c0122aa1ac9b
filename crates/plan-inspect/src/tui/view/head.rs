//! The title lines above and the key line below every view.

use super::super::{
    layout::Places,
    state::{App, Follow, View},
};
use context_window::{ContextPlan, ExcludedReason, Section, plan::NoticeCode};
use context_window_ratatui::StatusLine;
use context_window_report as report;
use context_window_report::palette;
use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::{Clear, Paragraph},
};
use unicode_width::UnicodeWidthStr;

/// Returns the tabs of the views with their texts. The current view is in brackets. On a narrow screen, the
/// other tabs are numbers only.
fn tabs(app: &App, columns: u16) -> Vec<(View, String)> {
    let named = columns >= 100;
    let tab = |(number, view): (usize, View)| {
        let named = named || view == app.view;
        let text = if named { format!("{} {}", number + 1, view.name()) } else { (number + 1).to_string() };
        (view, if view == app.view { format!("[{text}]") } else { format!(" {text} ") })
    };
    View::ALL.into_iter().enumerate().map(|(number, view)| tab((number, view))).collect()
}

fn tabs_width(tabs: &[(View, String)]) -> u16 {
    u16::try_from(tabs.iter().map(|(_, text)| text.width()).sum::<usize>()).unwrap_or(u16::MAX)
}

/// Returns the view whose tab is at this column of the title.
pub(crate) fn tab_at(app: &App, x: u16) -> Option<View> {
    let tabs = tabs(app, app.size.width);
    let mut from = app.size.width.saturating_sub(tabs_width(&tabs));
    for (view, text) in tabs {
        let to = from + u16::try_from(text.width()).unwrap_or(u16::MAX);
        if (from..to).contains(&x) {
            return Some(view);
        }
        from = to;
    }
    None
}

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, places: &Places) {
    title(frame, app, places.title);
    let Some(plan) = app.plan() else { return };
    fill(frame, app, plan, places.fill);
    super::render_whole(frame, facts(app, plan), places.facts);
}

fn title(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let tabs = tabs(app, area.width);
    let spans = tabs.iter().map(|(view, text)| {
        let style = if *view == app.view { app.theme.selected } else { Style::new() };
        Span::styled(text.clone(), style)
    });
    let width = tabs_width(&tabs).min(area.width);
    let right = Rect { x: area.right() - width, width, ..area };
    frame.render_widget(spans.collect::<Line<'_>>(), right);
    let name = report::cut(&report::printable(&app.subject.name), usize::from(area.width / 4));
    let mut left = vec![Span::styled(name, app.theme.heading)];
    let prompts = app.subject.prompts;
    let mark = app.place_of_prompt().and_then(|place| app.marks.get(place));
    let prompt = mark.map_or(prompts, |mark| mark.figures.number);
    if prompts > 1 {
        let (prompt, prompts) = (report::grouped(prompt as u64), report::grouped(prompts as u64));
        left.push(Span::raw(format!(" · prompt {prompt}/{prompts}")));
    }
    // The name and the number of the prompt are always shown.
    let always = left.len();
    if let Some(planned) = app.known() {
        left.push(Span::raw(format!(" · {}", report::brief(&planned.plan.model))));
        left.push(Span::styled(format!(" · plan {}", planned.fingerprint), app.theme.faint));
    }
    let last = left.len();
    match app.follow {
        Follow::No => {}
        Follow::Yes if app.unread => left.push(Span::styled(" · file not readable", app.theme.alarm)),
        Follow::Yes => left.push(Span::raw(" · following")),
        Follow::Paused(_) => left.push(Span::styled(" · paused", app.theme.warning)),
    }
    let room = Rect { width: (area.width - width).saturating_sub(1), ..area };
    // If the line is too narrow, the fingerprint is removed first, then the model.
    for place in (always..last).rev() {
        if left.iter().map(Span::width).sum::<usize>() > usize::from(room.width) {
            left.remove(place);
        }
    }
    frame.render_widget(Line::from(left), room);
}

/// Returns the sign of a section, which distinguishes it without colour.
pub(super) fn sign(section: Section) -> &'static str {
    match section {
        Section::SystemPinned => "▓",
        Section::Conversation => "█",
        Section::Rag => "▒",
    }
}

/// The minimum width of the bar in columns.
const LEAST: usize = 20;

/// Draws the tokens of the budget by kind: `OOOOOOAAAUS·····`.
fn fill(frame: &mut Frame<'_>, app: &App, plan: &ContextPlan, area: Rect) {
    let mut line = StatusLine::new(&plan.usage).with_theme(app.theme).line();
    // The bar is more useful than the last words of the status line, so these are removed first.
    while line.spans.len() > 1 && line.width() + 2 + LEAST > usize::from(area.width) {
        line.spans.pop();
    }
    let status = line.width();
    let bar = usize::from(area.width).saturating_sub(status + 2).min(60);
    if bar < LEAST {
        frame.render_widget(line, area);
        return;
    }
    let mut kinds = plan.composition(0).by_group();
    // The bar shows the prompt budget only, and the reply reserve is outside of it.
    kinds.reply = 0;
    let cells = kinds.cells(bar);
    let mut spans: Vec<Span<'_>> = Vec::new();
    for ((kind, _), columns) in kinds.kinds.iter().zip(cells.kinds) {
        let sign = palette::sign(kind).to_string();
        spans.push(Span::styled(sign.repeat(columns), app.theme.kind(kind)));
    }
    spans.push(Span::styled(palette::FREE.to_string().repeat(cells.free), app.theme.faint));
    spans.push(Span::raw("  "));
    frame.render_widget(spans.into_iter().chain(line.spans).collect::<Line<'_>>(), area);
}

/// Returns the facts below the title, the most important first: overflow, dropped pins, composition, notices,
/// full conversation, cached prefix and billed tokens.
fn facts(app: &App, plan: &ContextPlan) -> Vec<Span<'static>> {
    let usage = &plan.usage;
    let mut parts = Vec::new();
    if let Some(overflow) = &plan.overflow {
        let over = report::grouped(overflow.tokens);
        parts.push(Span::styled(format!("! over budget by {over}, f tries a fix"), app.theme.alarm));
    }
    parts.extend(dropped_pin(plan).map(|pin| Span::styled(pin, app.theme.alarm)));
    parts.extend(most(plan).map(Span::raw));
    if !plan.notices.is_empty() {
        let notices = if plan.notices.len() == 1 { "notice" } else { "notices" };
        parts.push(Span::styled(format!("! {} {notices}", plan.notices.len()), app.theme.warning));
    }
    let (sent, lost) = (plan.thoughts.sent, plan.thoughts.lost.len() as u64);
    if sent + lost > 0 {
        let style = if lost > 0 { app.theme.warning } else { Style::new() };
        let text = format!("reasoning: {} sent, {} lost", report::grouped(sent), report::grouped(lost));
        parts.push(Span::styled(text, style));
    }
    if usage.limit > 0 {
        let (pressure, limit) = (report::tokens(usage.conversation_tokens), report::grouped(usage.limit));
        let percent = report::usage_percent(usage);
        parts.push(Span::raw(format!("full conversation {pressure} / {limit} ({percent})")));
    }
    let repeated = plan.repeated().map(|prefix| prefix.tokens);
    let mark = app
        .place_of_prompt()
        .and_then(|place| app.marks.get(place))
        .filter(|_| app.what_if.changes().is_empty());
    // The present prompt of a session has no predecessor, but its replay does. The figures of the replay are
    // valid only if it led to the same plan.
    let same = mark
        .filter(|mark| mark.figures.tokens == plan.estimated_tokens_total.tokens)
        .and_then(|mark| mark.figures.repeats());
    if let Some(tokens) = repeated.or(same.map(|(tokens, _)| tokens)) {
        // The prefix is limited to this prompt, because the last prompt can be larger.
        let (tokens, of) = (
            report::grouped(tokens.min(plan.estimated_tokens_total.tokens)),
            report::grouped(plan.estimated_tokens_total.tokens),
        );
        parts.push(Span::raw(format!("cached {tokens} of this prompt's {of}")));
    } else if let Some(mark) = mark.filter(|mark| mark.figures.tokens != plan.estimated_tokens_total.tokens) {
        let tokens = report::grouped(mark.figures.tokens);
        parts.push(Span::raw(format!("fresh plan; continuing the last prompt: {tokens}")));
    }
    let billed = app.subject.session().log.billed();
    if billed.context_size() > 0 {
        let (sent, got) = (report::grouped(billed.context_size()), report::grouped(billed.output));
        parts.push(Span::raw(format!("billed: in {sent} out {got}")));
    }
    if usage.compactions > 0 {
        let compactions = if usage.compactions == 1 { "compaction" } else { "compactions" };
        parts.push(Span::raw(format!("{} {compactions}", report::grouped(usage.compactions))));
    }
    parts.push(Span::raw(format!("context length {}", report::grouped(usage.model_context_len))));
    // The separator belongs to the part after it, so a part that does not fit takes its separator along.
    for part in parts.iter_mut().skip(1) {
        part.content = format!(" · {}", part.content).into();
    }
    parts
}

/// Describes the first pin that does not fit: `! note does not fit: 7,147 > 3,408`.
fn dropped_pin(plan: &ContextPlan) -> Option<String> {
    let notice = plan.notices.iter().find(|notice| notice.code == NoticeCode::PinDropped)?;
    let id = notice.ids.first()?;
    let room = plan.excluded.iter().find(|row| row.id == *id).map(|row| (&row.reason, row.token_estimate));
    let said = match room {
        Some((ExcludedReason::Budget { room, .. }, tokens)) => {
            format!(": {} > {}", report::tokens(tokens), report::grouped(*room))
        }
        _ => String::new(),
    };
    Some(format!("! {} does not fit{said}", report::brief(id.as_str())))
}

/// Describes the largest kind and item of a prompt that fills half of its budget or more: `documents 35 %,
/// largest postage 48 (12 %)`.
fn most(plan: &ContextPlan) -> Option<String> {
    let composition = plan.composition(1);
    let groups = composition.by_group().kinds;
    let (kind, _) = groups.first()?;
    let item = composition.largest.first().filter(|_| composition.total >= composition.free)?;
    let parts: Vec<u64> = groups.iter().map(|(_, tokens)| *tokens).collect();
    let share = report::percentages(&parts, composition.total).into_iter().next()?;
    let (id, size) = (report::brief(item.id.as_str()), report::tokens(item.tokens));
    let own = report::share(item.tokens.tokens, composition.total);
    Some(format!("{} {share}, largest {id} {size} ({own})", kind.text()))
}

/// Draws the last line: the filter while the user types it, otherwise the last message, otherwise the main
/// keys.
pub(super) fn foot(frame: &mut Frame<'_>, app: &App, area: Rect) {
    if let Some(input) = &app.input {
        let label = "filter: ";
        let room = usize::from(area.width).saturating_sub(label.len() + 1);
        let scroll = input.visual_scroll(room);
        let shown: String = report::printable(input.value()).chars().skip(scroll).collect();
        let hint = if app.note.is_empty() { String::new() } else { format!("   {}", app.note) };
        let line =
            [Span::styled(label, app.theme.heading), Span::raw(shown), Span::styled(hint, app.theme.alarm)];
        frame.render_widget(Line::from_iter(line), area);
        // The cursor is relative to the visible part of the text.
        let x = label.len() + input.visual_cursor().saturating_sub(scroll);
        frame.set_cursor_position((area.x + u16::try_from(x).unwrap_or_default(), area.y));
        return;
    }
    if !app.note.is_empty() {
        // A message that is too long for one line also uses the line above.
        let lines = report::wrapped(&report::printable(&app.note), area.width.into());
        let above = u16::from(lines.len() > 1);
        let area = Rect { y: area.y - above, height: 1 + above, ..area };
        frame.render_widget(Clear, area);
        let lines: Vec<Line<'_>> = lines.into_iter().map(Line::raw).collect();
        frame.render_widget(Paragraph::new(lines).style(app.theme.warning), area);
        return;
    }
    let keys = match app.view {
        View::Plan => {
            "? help  q quit  / filter  a i o show  [ ] prompt  < > budget  p pin  x exclude  ! notices"
        }
        View::Timeline => "? help  q quit  j k select  Enter open prompt  { } compaction  1 plan",
        View::Diff => "? help  q quit  j k select  Enter open item  d next comparison  [ ] prompt  1 plan",
        View::Config => "? help  q quit  j k scroll  1 plan",
        View::Items => {
            "? help  q quit  / filter  a i o show  s sort  Enter open  p pin  x exclude  { } compaction  1 plan"
        }
    };
    let hints = keys.split("  ").enumerate().map(|(at, hint)| {
        let gap = if at == 0 { "" } else { "  " };
        Span::styled(format!("{gap}{hint}"), app.theme.faint)
    });
    super::render_whole(frame, hints.collect(), area);
}
