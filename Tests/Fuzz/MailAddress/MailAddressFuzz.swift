import Foundation
import MartletConfig
import MartletCore
import MartletEvents

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMailAddress(_ data: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    let text = String(decoding: UnsafeBufferPointer(start: data, count: count), as: UTF8.self)
    if let address = EmailAddress(text) {
        precondition(
            EmailAddress(address.text) == address && address.text.utf8.allSatisfy { (0x21...0x7E).contains($0) })
    }
    if let tag = LanguageTag(text) { precondition(LanguageTag(tag.text) == tag) }
    if let template = LinkTemplate(text) {
        let link = template.link("mlt_token")
        precondition(link.hasPrefix("http") && link.utf8.allSatisfy { (0x21...0x7E).contains($0) })
    }
    if let server = MailServerAddress(text) {
        precondition(!server.host.isEmpty && server.port > 0 && server.user?.utf8.contains { $0 < 0x20 } != true)
    }
    // Whatever is in a mail, it adds no field.
    guard let recipient = EmailAddress("ada@example.com") else { return 0 }
    let sender = MailSender(text).map { ($0.name, $0.address) } ?? (text, recipient)
    let request = MailRequest(
        to: recipient.text, .register, token: "mlt_token", link: nil, locale: text, expiresAt: UnixTime(seconds: 0))
    let mail = MailMessage(
        from: sender, to: recipient, MailText(request), id: text, at: UnixTime(seconds: Int64(count)))
    let head = String(decoding: mail.content, as: UTF8.self).components(separatedBy: "\r\n\r\n")
    let names = head[0].replacing("\r\n ", with: " ").components(separatedBy: "\r\n").map { $0.prefix { $0 != ":" } }
    precondition(names.count == 9 && Set(names).count == 9)
    return 0
}
