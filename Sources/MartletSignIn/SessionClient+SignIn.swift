internal import MartletCore
internal import MartletIO
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder
internal import MartletSession

/// The client data that a session stores, and its form in lists of sessions.
extension SessionClient {
    private static let maximumNameLength = 64
    private static let maximumAgentBytes = 256
    private static let member = "device_name"

    /// - Throws: 400 for a `device_name` that is not a string, too long, or contains control or direction characters.
    init(_ form: SignInForm, _ request: LocalRequest) throws(Failure) {
        let name = try read(form.text(Self.member))
        if let name { try Self.check(name) }
        self.init(
            deviceName: name?.isEmpty == true ? nil : name,
            userAgent: request.field("User-Agent").flatMap(Self.agent), address: request.address)
    }

    /// Of a browser, which names no device.
    init(_ request: LocalRequest) {
        self.init(
            deviceName: nil, userAgent: request.field("User-Agent").flatMap(Self.agent), address: request.address)
    }

    private static func check(_ name: String) throws(Failure) {
        guard name.unicodeScalars.count <= maximumNameLength else {
            let detail = "`device_name` must have at most \(maximumNameLength) characters."
            throw .malformed(.signInBadDeviceName, [BodyError(member, .tooLong, detail: detail)])
        }
        guard !name.unicodeScalars.contains(where: isControl) else {
            let detail = "`device_name` must not contain control characters."
            throw .malformed(.signInBadDeviceName, [BodyError(member, .invalid, detail: detail)])
        }
    }

    /// Control characters, line separators and direction marks.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x00..<0x20, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    /// The field made safe for lists: printable ASCII, truncated.
    private static func agent(_ value: String) -> String? {
        let bytes = value.utf8.prefix(maximumAgentBytes).map { (0x20...0x7E).contains($0) ? $0 : 0x3F }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }
}

extension SessionSummary {
    /// The entry in `GET /sessions`.
    func entry(isCurrent: Bool) -> JSONObject {
        var entry = self.entry
        entry["current"] = .bool(isCurrent)
        return entry
    }
}
