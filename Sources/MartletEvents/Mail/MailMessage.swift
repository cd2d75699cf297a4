package import MartletCore

/// A mail as it is sent (RFC 5322, RFC 2045): header fields and a plain text, with CRLF.
///
/// Every value is encoded or of a type that cannot contain a line break, so no value can add a field.
package struct MailMessage: Sendable {
    /// The bytes to send, from the first field to the end of the text.
    package let content: [UInt8]

    /// - Parameters:
    ///   - sender: the name and the address of `From`.
    ///   - id: the left part of `Message-ID`: letters, digits, `.`, `-` and `_`.
    ///   - now: when it is written.
    package init(
        from sender: (name: String?, address: EmailAddress), to recipient: EmailAddress, _ text: MailText, id: String,
        at now: UnixTime
    ) {
        let body = MailMessage.lines(of: text.body)
        let isPlain = body.allSatisfy { line in
            line.utf8.count <= MailMessage.longestLine && line.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        }
        let from =
            sender.name.map { "\(MailMessage.phrase($0)) <\(sender.address.text)>" } ?? sender.address.text
        let fields = [
            "Date: \(MailMessage.date(now))", "From: \(from)", "To: \(recipient.text)",
            "Subject: \(MailMessage.unstructured(text.subject))",
            "Message-ID: <\(id.filter(MailMessage.isIdentifier))@\(sender.address.domain)>", "MIME-Version: 1.0",
            "Content-Type: text/plain; charset=utf-8",
            "Content-Transfer-Encoding: \(isPlain ? "7bit" : "base64")", "Auto-Submitted: auto-generated",
        ]
        let lines = isPlain ? body : MailMessage.base64(text.body)
        content = Array((fields + [""] + lines).map { "\($0)\r\n" }.joined().utf8)
    }

    /// Well below the 998 of RFC 5322, whatever relays add.
    private static let longestLine = 900
    private static let encodedLine = 76
    /// The bytes of an encoded word, of which at most 75 characters are allowed (RFC 2047 §2).
    private static let wordBytes = 42

    private static func lines(of text: String) -> [String] {
        var lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        if lines.last?.isEmpty == true { lines.removeLast() }
        return lines
    }

    private static func base64(_ text: String) -> [String] {
        // Lines of a text end in CRLF before they are encoded.
        let canonical = lines(of: text).map { "\($0)\r\n" }.joined()
        let encoded = Array(Base64.encode(Array(canonical.utf8), padding: .required).utf8)
        return stride(from: 0, to: encoded.count, by: encodedLine).map {
            String(decoding: encoded[$0..<min($0 + encodedLine, encoded.count)], as: UTF8.self)
        }
    }

    /// A display name: as it is, if it needs no quotes, otherwise encoded.
    private static func phrase(_ name: String) -> String {
        let isPlain = name.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || byte == 0x20
        }
        return isPlain ? name : encodedWords(name)
    }

    private static func unstructured(_ text: String) -> String {
        text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) && text.utf8.count < encodedLine
            ? text : encodedWords(text)
    }

    /// RFC 2047, in words that do not divide a character.
    private static func encodedWords(_ text: String) -> String {
        var words: [[UInt8]] = [[]]
        for scalar in text.unicodeScalars {
            let bytes = Array(String(scalar).utf8)
            if (words.last?.count ?? 0) + bytes.count > wordBytes { words.append([]) }
            words[words.count - 1] += bytes
        }
        return words.map { "=?utf-8?B?\(Base64.encode($0, padding: .required))?=" }.joined(separator: "\r\n ")
    }

    private static func isIdentifier(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || ".-_".contains(character))
    }

    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// `Mon, 23 Nov 2026 09:30:00 +0000`.
    private static func date(_ now: UnixTime) -> String {
        let seconds = min(max(now.seconds, 0), 253_402_300_799)
        let day = seconds / 86_400
        let date = CalendarDate(daysSince1970: day)
        let clock = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60]
            .map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
        let month = months[Int(min(max(date.month, 1), 12)) - 1]
        return "\(days[Int(day % 7)]), \(date.day) \(month) \(date.year) \(clock) +0000"
    }
}
