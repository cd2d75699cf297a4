import Foundation
import MartletCore
import MartletJSON
import MartletTesting
import Testing

@testable import MartletEvents

private let token = "mlt_" + String(repeating: "t", count: 43)

private func mail(
    _ template: MailTemplate = .passwordReset, link: String? = nil, locale: String? = nil
) -> MailRequest {
    MailRequest(
        to: "ada@example.com", template, token: template == .alreadyRegistered ? nil : token, link: link,
        locale: locale, expiresAt: UnixTime(seconds: 1_795_428_000))
}

/// A mail as its receiver reads it.
private struct ReadMail {
    let fields: [(name: String, value: String)]
    let text: String

    init(_ bytes: [UInt8]) throws {
        let whole = String(decoding: bytes, as: UTF8.self)
        let end = try #require(whole.range(of: "\r\n\r\n"))
        let lines = whole[..<end.lowerBound].replacing("\r\n ", with: " ").components(separatedBy: "\r\n")
        fields = lines.map { line in
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            return (parts[0], parts.count > 1 ? String(parts[1].dropFirst()) : "")
        }
        let body = String(whole[end.upperBound...])
        let isEncoded = fields.contains { $0 == ("Content-Transfer-Encoding", "base64") }
        let decoded = isEncoded ? Data(base64Encoded: body.replacing("\r\n", with: "")) : Data(body.utf8)
        text = String(decoding: try #require(decoded), as: UTF8.self)
    }

    subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

    /// The encoded words of a value, decoded.
    static func decoded(_ value: String) -> String {
        let bytes = value.split(separator: " ").compactMap { word in
            Data(base64Encoded: String(word.dropFirst("=?utf-8?B?".count).dropLast(2)))
        }
        return String(decoding: bytes.reduce(Data(), +), as: UTF8.self)
    }
}

private func message(
    _ request: MailRequest, name: String? = nil, id: String = "01KARRB91TPZ3VW3S5E8Q0N6YB"
) throws -> MailMessage {
    MailMessage(
        from: (name, try #require(EmailAddress("auth@example.com"))), to: try #require(EmailAddress(request.address)),
        MailText(request), id: id, at: UnixTime(seconds: 1_795_426_201))
}

@Suite struct `A mail` {
    @Test func `is the data of an event`() {
        for request in [
            mail(), mail(.alreadyRegistered),
            mail(.register, link: "https://a.example.com/\(token)", locale: "zh-Hans"),
        ] { #expect(MailRequest(request.data) == request) }
        #expect(mail().data["token"]?.string == token && mail(.alreadyRegistered).data["token"] == nil)
        for broken: JSONObject in [
            [:], ["address": "a@b.cd"], ["address": true, "template": "register", "expires_at": .integer(1)],
        ] {
            #expect(MailRequest(broken) == nil)
        }
    }

    @Test func `in English has plain lines`() throws {
        let read = try ReadMail(try message(mail(), name: "Example Login").content)
        #expect(read["From"] == "Example Login <auth@example.com>" && read["To"] == "ada@example.com")
        #expect(read["Subject"] == "Choose a new password" && read["Date"] == "Mon, 23 Nov 2026 09:30:01 +0000")
        #expect(read["Message-ID"] == "<01KARRB91TPZ3VW3S5E8Q0N6YB@example.com>")
        #expect(read["Content-Transfer-Encoding"] == "7bit" && read["MIME-Version"] == "1.0")
        #expect(read.text.contains("\r\n\(token)\r\n") && read.text.hasSuffix("\r\n"))
        #expect(read.text.contains("30 minutes"))
    }

    @Test func `in Chinese is encoded`() throws {
        let request = mail(.register, link: "https://app.example.com/v?t=\(token)", locale: "zh-CN")
        let content = try message(request, name: "张三 公司").content
        #expect(content.allSatisfy { $0 < 0x80 })
        let read = try ReadMail(content)
        #expect(ReadMail.decoded(try #require(read["Subject"])) == "确认您的邮箱地址")
        let from = try #require(read["From"])
        #expect(ReadMail.decoded(String(from.prefix { $0 != "<" })) == "张三 公司" && from.hasSuffix(" <auth@example.com>"))
        #expect(read.text.contains("https://app.example.com/v?t=\(token)\r\n") && read.text.contains("注册"))
    }

    @Test(arguments: MailTemplate.allCases, ["en", "de", "zh-Hans", "zh-TW", nil] as [String?])
    func `has a text in either language`(template: MailTemplate, locale: String?) throws {
        let text = MailText(mail(template, locale: locale))
        #expect(text.subject.unicodeScalars.allSatisfy(\.isASCII) == (locale?.hasPrefix("zh") != true))
        #expect(text.body.contains(token) == (template != .alreadyRegistered))
        let read = try ReadMail(try message(mail(template, locale: locale)).content)
        #expect(read.text == text.body.replacing("\n", with: "\r\n"))
    }

    @Test func `never has a line that is too long, or a field that a value added`() throws {
        let link = "https://app.example.com/" + String(repeating: "x", count: 1900) + token
        for request in [mail(link: link), mail(locale: "en\r\nBcc: eve@example.com")] {
            for name in [nil, "Ada \"Quoted\"", "Eve\r\nBcc: eve@example.com", String(repeating: "长", count: 60)] {
                let content = try message(request, name: name, id: "a>\r\nBcc: eve@example.com").content
                let lines = String(decoding: content, as: UTF8.self).components(separatedBy: "\r\n")
                #expect(lines.allSatisfy { $0.utf8.count <= 900 && !$0.contains("\r") && !$0.contains("\n") })
                let names = try ReadMail(content).fields.map(\.name)
                #expect(Set(names).count == names.count && names.count == 9 && !names.contains("Bcc"), "\(names)")
            }
        }
    }
}

/// A mail server that accepts, or not.
private final class ScriptedServer: MailSending {
    let mails = Box<[(sender: String, recipient: String, content: [UInt8])]>([])
    private let result: DeliveryAttempt

    init(_ result: DeliveryAttempt = .delivered) { self.result = result }

    func send(from sender: EmailAddress, to recipient: EmailAddress, content: [UInt8]) async -> DeliveryAttempt {
        mails.withLock { $0.append((sender.text, recipient.text, content)) }
        return result
    }
}

@Suite struct `The sender of mails` {
    private func send(
        _ event: Event, by server: ScriptedServer = ScriptedServer(), at now: Int64 = 1_795_426_201
    ) async throws -> DeliveryAttempt {
        let clock = Clock(
            unixTime: { UnixTime(seconds: now) }, monotonicTime: { MonotonicTime(nanoseconds: 0) })
        let sender = MailEventSender(
            from: ("Example", try #require(EmailAddress("auth@example.com"))), by: server, concurrency: 4,
            maximumAge: .seconds(1800), clock: clock)
        #expect(sender.name == "mail:smtp" && sender.concurrency == 4)
        return await sender.send(event)
    }

    private func event(_ data: JSONObject, type: EventType = .mailRequested) -> Event {
        Event(id: "E1", type: type, subject: "ada@example.com", time: 0, data: data)
    }

    @Test(arguments: [.delivered, .failed(reason: "x"), .refused(reason: "y")] as [DeliveryAttempt])
    func `hands a mail over`(result: DeliveryAttempt) async throws {
        let server = ScriptedServer(result)
        #expect(try await send(event(mail().data), by: server) == result)
        let sent = try #require(server.mails.value.first)
        #expect(sent.sender == "auth@example.com" && sent.recipient == "ada@example.com")
        #expect(try ReadMail(sent.content)["To"] == "ada@example.com")
    }

    @Test func `refuses what is no mail, or is no longer worth sending`() async throws {
        let server = ScriptedServer()
        var data = mail().data
        data["address"] = "ada@example.com\r\nRCPT TO:<eve@example.com>"
        for event in [event([:]), event(data), event(mail().data, type: .accountCreated)] {
            #expect(try await send(event, by: server) == .refused(reason: "events.no_mail: not a mail"))
        }
        let late = try await send(event(mail().data), by: server, at: 1_795_428_000)
        #expect(late == .refused(reason: "events.expired: link expired"))
        #expect(server.mails.value.isEmpty)
    }

    @Test func `gets what only its own pattern names`() throws {
        let star = try #require(EventPattern("*"))
        #expect(!star.matches(.mailRequested) && star.matches(.accountCreated))
        for text in ["mail.*", "mail.requested"] { #expect(try #require(EventPattern(text)).matches(.mailRequested)) }
    }
}
