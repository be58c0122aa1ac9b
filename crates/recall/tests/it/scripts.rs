//! Questions in several scripts.

use context_window::{Conversation, Message, PlanRequest};
use context_window_recall::Recall;

#[test]
fn words_of_every_script_are_found() {
    let texts = [
        "我的备用钥匙在蓝色花盆下面。",
        "会議は木曜日の午後三時に始まります。",
        "กุญแจสำรองอยู่ใต้กระถางสีฟ้า",
        "Der Ersatzschlüssel hängt hinter der Küchentür in der Bergstraße.",
        "المفتاح الاحتياطي تحت الوعاء الأزرق",
        "Запасной ключ висит за дверью кухни.",
        "चाबी नीले गमले के नीचे है",
        "열쇠는 파란 화분 아래에 있습니다.",
    ];
    let filler = "This reply is long enough to be a passage of its own. ".repeat(10);
    let messages = texts.iter().flat_map(|text| [Message::user(*text), Message::assistant(filler.as_str())]);
    let log = Conversation::from_iter(messages);
    for (question, at) in [
        ("备用钥匙在哪里？", 0),
        ("会議はいつ始まりますか", 2),
        ("กุญแจสำรองอยู่ที่ไหน", 4),
        ("Wo hängt der ERSATZSCHLÜSSEL?", 6),
        ("أين المفتاح الاحتياطي؟", 8),
        ("Где запасной ключ?", 10),
        ("गमले के नीचे क्या है?", 12),
        ("파란 화분", 14),
    ] {
        let mut asked = log.clone();
        asked.push(Message::user(question));
        let mut recall = Recall::new();
        let request = recall.for_request(PlanRequest::new(&asked));
        let first = request.rag.iter().next().unwrap();
        assert_eq!(first.id().as_str(), format!("recall:m{at}"), "{question}");
        assert_eq!(recall.search(&asked, question)[0].messages, at..at + 1, "{question}");
    }
}
