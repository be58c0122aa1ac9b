//! Own sentences: rules in several languages, and sentences that are none.

use context_window::find_rules;

/// Messages that are one rule as a whole.
const RULES: [&str; 76] = [
    "When I paste a link, read it first.",
    "Stop using emojis.",
    "Don't add comments anymore.",
    "Remember: always sign the commits.",
    "Make sure you never skip a test.",
    "Wenn ich nach Code frage, gib nur den Code.",
    "Quand je colle du code, explique les erreurs.",
    "Cada vez que termines, ejecuta el linter.",
    "Запускай тесты перед каждым коммитом.",
    "每次提交前请运行测试。",
    "Never touch the migrations folder.",
    "always run the tests before you commit",
    "Please always ask me before you delete a file.",
    "From now on, speak to me in Dutch.",
    "Going forward, use tabs in every file.",
    "Don't ever push to the main branch.",
    "Do not install packages without asking me first.",
    "Do not open a pull request unless I ask for one.",
    "You must never print secrets.",
    "You should always add a changelog entry.",
    "Remember to always format the code.",
    "Under no circumstances may the schema change.",
    "Run the linter after every change.",
    "Whenever you add a module, write a test for it.",
    "Keep your answers below ten lines.",
    "Your answers must be in plain English.",
    "I want you to always cite the page.",
    "You can only use the tools of this project.",
    "For the rest of this conversation, call me Captain.",
    "And never rename a public function!",
    "Important: do not edit generated files.",
    "Every time you finish, update the notes.",
    "**Never** commit large files.",
    "In future, ask before you refactor.",
    "Antworte ab jetzt auf Deutsch.",
    "Verwende nie Tabulatoren.",
    "Führe vor jedem Commit die Tests aus.",
    "Bitte immer zuerst den Plan zeigen.",
    "Niemals den Ordner mit den Migrationen anfassen.",
    "Du darfst nur lesen, nichts ändern.",
    "Wichtig: Ändere keine Konfiguration.",
    "Von nun an duzt du mich.",
    "Schreib grundsätzlich kurze Antworten.",
    "Réponds toujours en français.",
    "Ne touche jamais au dossier des migrations.",
    "À partir de maintenant, utilise le vouvoiement.",
    "N'ajoutez jamais de dépendance.",
    "Lance les tests avant chaque commit.",
    "Toujours citer la source.",
    "Dorénavant, écris en anglais.",
    "Responde siempre en español.",
    "Nunca borres la base de datos.",
    "A partir de ahora escribe sin tildes.",
    "No modifiques nada sin preguntarme.",
    "Ejecuta las pruebas antes de cada commit.",
    "Siempre usa comillas simples.",
    "Rispondi sempre in italiano.",
    "D'ora in poi dammi del tu.",
    "Non toccare mai quella cartella.",
    "Responda sempre em português.",
    "Nunca altere os testes.",
    "A partir de agora, use espaços.",
    "Всегда отвечай по-русски.",
    "Никогда не удаляй файлы.",
    "Отныне пиши только на английском.",
    "始终用中文回答。",
    "从现在开始，请用简体中文回答。",
    "永远不要修改数据库。",
    "切勿提交密码。",
    "今后请先运行测试。",
    "今後は日本語で答えてください。",
    "必ずテストを実行してください。",
    "絶対にこのフォルダを変更しないでください。",
    "これからは敬語を使わないでください。",
    "常に型を書いてください。",
    "決してmainにプッシュしないでください。",
];

/// Messages without a rule.
const NONE: [&str; 72] = [
    "I never use tabs.",
    "I always forget the comma.",
    "We always deploy on Fridays.",
    "My tests never pass on the first run.",
    "Should I always add an index?",
    "Do you always answer in English?",
    "Why does it never work?",
    "It always fails on Windows.",
    "The function never returns.",
    "The function should return a list.",
    "The parser must handle empty lines.",
    "Always fails with a timeout.",
    "Never had that problem before.",
    "Never mind, it works.",
    "You always forget the semicolon.",
    "From now on I will write shorter messages.",
    "For now, never mind the tests.",
    "This time, always take the first match.",
    "Don't use the cache here.",
    "Use the second option.",
    "Add a function that always returns the same seed.",
    "Make sure the button is blue.",
    "If you need the file, tell me.",
    "He said \"never push to main\" and left.",
    "Rename “Always on top” to “Pinned”.",
    "The comment `always lock first` is wrong.",
    "Set the title to 'Never give up'.",
    "> Never touch the config.",
    "```\nNever touch the config.\n```",
    "~~~text\nAlways lock first.\n~~~",
    "    Never touch the config.",
    "Fix this:\n\n    // Always lock first\n    lock();",
    "<document>\nAlways wear a helmet.\n</document>\nSummarise it.",
    "<tool_result>Never do this again.</tool_result>",
    "<!-- Never edit by hand. -->",
    "{\"rule\": \"Never answer.\"}",
    "{\n  \"rule\": \"Always answer.\"\n}",
    "Traceback (most recent call last):\n  File \"a.py\", line 1\nAlways close the file.",
    "ValueError: Never pass a negative number.",
    "ERROR Never pass a negative number.",
    "2026-01-02 10:00:00 Always on.",
    "diff --git a/x b/x\n@@ -1 +1 @@\n-Never do this.\n+Always do this.",
    "| Never | Always |",
    "// Always lock first.",
    "# Always on\nTranslate it.",
    "Article:\n\nAlways read the label. Never mix the two.",
    "Context: Never mix the two. Always read the label.",
    "Here is what the manual says:\n\nNever open the case.",
    "- [ ] Never skip the review",
    "What is the plot of Never Let Me Go?",
    "Steps:\n1. Open the file\n2. Do not save it\n3. Run the tests",
    "Ich benutze nie Tabs.",
    "Das schlägt immer fehl.",
    "Soll ich immer alles testen?",
    "Er sagte „Niemals aufgeben“ und ging.",
    "Immer noch derselbe Fehler.",
    "Schreibe eine Funktion, die immer drei liefert.",
    "Je ne comprends jamais ce message.",
    "Est-ce que je dois toujours tester ?",
    "Il a écrit « Ne touche jamais à ça ».",
    "La fonction renvoie toujours zéro.",
    "Nunca he visto este error.",
    "Siempre me falla la prueba.",
    "¿Debo responder siempre en inglés?",
    "Non ho mai visto questo errore.",
    "Eu nunca uso isso.",
    "Я никогда не видел этого.",
    "我总是忘记密码。",
    "我应该始终使用索引吗？",
    "他说「永远不要放弃」。",
    "私はいつも忘れます。",
    "彼は「絶対に触るな」と言いました。",
];

/// Returns the rules of a text, as texts.
fn found(text: &str) -> Vec<&str> {
    find_rules(text).into_iter().map(|range| &text[range]).collect()
}

#[test]
fn rules_are_found_in_all_languages() {
    let missed: Vec<&str> = RULES.into_iter().filter(|rule| found(rule) != [*rule]).collect();
    assert_eq!(missed, [""; 0]);
}

#[test]
fn other_sentences_are_no_rules() {
    let wrong: Vec<&str> = NONE.into_iter().filter(|text| !found(text).is_empty()).collect();
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn rules_are_cut_out_of_their_message() {
    let text = "Hi! The build is red again.\n\n  - Never push on Fridays.  \n  - Use tabs, please.\n\nThanks. Always test!";
    assert_eq!(found(text), ["Never push on Fridays.", "Always test!"]);
    let text =
        "## Rules\n1. Use tabs\n2. The build is slow\n3. Names must be short\n\n## Steps\n1. Use the form";
    assert_eq!(found(text), ["Use tabs", "Names must be short"]);
    let text = "Each response should include:\n* a plan\n* one command\n\nIf you need two commands, either:\n* join them";
    assert_eq!(found(text), ["a plan", "one command", "join them"]);
    let text = "Never push. When you rename a type,\nupdate the docs. Avoid long names. It is blue.";
    assert_eq!(
        found(text),
        ["Never push.", "When you rename a type,\nupdate the docs.", "Avoid long names."]
    );
    let text =
        "<instructions>\nAlways test.\n</instructions>\n<file>\nNever test.\n</file>\nIssue:\nAlways red.";
    assert_eq!(found(text), ["Always test."]);
    let text = "Never push.\r\nHi:\r\n\r\n- red\r\n- blue\r\n";
    assert_eq!(found(text), ["Never push."]);
    let text = "## Workflow\n1. Read it\n2. Do not edit it\n3. Never push\n\n## Notes\n- [ ] Never push";
    assert_eq!(found(text), ["Do not edit it", "Never push"]);
    let text = "Regeln:\n- Verwende Tabs\n- Der Build ist langsam\n\n注意：\n- 用中文回答\n";
    assert_eq!(found(text), ["Verwende Tabs", "用中文回答"]);
}
