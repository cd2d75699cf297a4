internal import MartletCore
internal import MartletJSON

/// A line of an audit log, as its verification reads it.
package struct AuditLine {
    /// A longer line is not one of a log.
    package static let maximumBytes = 64 * 1024
    static let signatureMark = Array(",\"signature\":\"".utf8)
    private static let hashDigits = 64
    private static let nameDigits = 16
    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: maximumBytes)

    let sequence: Int64
    let previous: String
    let chain: String
    /// `nil` for an event.
    let head: AuditHead?
    let members: JSONObject

    /// - Returns: `nil` unless the bytes are a line as the log writes it.
    package init?(_ bytes: [UInt8]) {
        guard let members = try? JSON.parse(bytes, limits: Self.limits).object, members.count >= 5 else { return nil }
        let names = members.members.prefix(5).map(\.name)
        guard names == ["seq", "prev", "chain", "time", "event"], let sequence = members["seq"]?.int64, sequence >= 0,
            let previous = members["prev"]?.string, Self.isHexadecimal(previous, digits: Self.hashDigits),
            let chain = members["chain"]?.string, Self.isHexadecimal(chain, digits: Self.nameDigits),
            let event = members["event"]?.string, members["time"]?.string != nil
        else { return nil }
        self.sequence = sequence
        self.previous = previous
        self.chain = chain
        self.members = members
        guard event == "head" else {
            head = nil
            return
        }
        guard let head = Self.head(of: members, bytes) else { return nil }
        self.head = head
    }

    private static func head(of members: JSONObject, _ bytes: [UInt8]) -> AuditHead? {
        guard let cause = members["cause"]?.string.flatMap(HeadCause.init),
            let key = members["key"]?.string, let last = members.members.last, last.name == "signature",
            let text = last.value.string, let signature = Base64URL.decode(text)
        else { return nil }
        let signed = bytes.count - signatureMark.count - text.utf8.count - 2
        guard signed > 0, bytes[signed...].starts(with: signatureMark) else { return nil }
        var head = AuditHead(cause: cause)
        head.opens = members["opens"]?.bool ?? false
        head.lost = members["lost"]?.int64.flatMap { Int(exactly: $0) } ?? 0
        head.torn = members["torn"]?.string
        (head.key, head.signature, head.signedBytes) = (key, signature, signed)
        return head
    }

    static func isHexadecimal(_ text: String, digits: Int) -> Bool {
        text.utf8.count == digits && Hexadecimal.bytes(text) != nil
    }
}
