internal import MartletAudit
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletResponder

/// A request to the admin listener that is to change something, as the audit log records it.
struct AdminChange {
    private static let limits = JSONLimits(maximumDepth: 4, maximumBytes: 16 * 1024)

    private let request: LocalRequest
    /// `nil` for a request that the access rules reject.
    private let credential: AdminCredential?

    /// - Returns: `nil` for a request that reads.
    init?(_ request: LocalRequest, _ access: AdminAccess) {
        guard !["GET", "HEAD", "OPTIONS"].contains(request.method) else { return nil }
        self.request = request
        credential = access.rejection(of: request, for: .change) == nil ? access.credential(of: request) : nil
    }

    func event(_ response: LocalResponse) -> AuditEvent {
        var event = AuditEvent(.adminChange, Self.outcome(response.status))
        event.set("method", request.method)
        event.set("path", OwnToken.masked(path))
        for (name, value) in asked(response) {
            if let number = value.int64 { event.set(name, Int(number)) } else { event.set(name, value.string) }
        }
        event.set("status", response.status)
        event.set("reason", response.reason?.rawValue)
        switch credential {
        case .token?: event.set("credential", "token")
        case .local?: event.set("credential", "local")
        case .certificate(let certificate)?:
            event.set("credential", "certificate")
            event.set("certificate", Self.name(certificate))
        case nil: break
        }
        event.set("address", request.client)
        event.set("request_id", request.requestID)
        return event
    }

    /// The path with subjects named as in events; a segment that is not a session ID is omitted, because it may be a
    /// token.
    private var path: String {
        let resource = AdminResource(path: request.path)
        var parts = request.path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        switch resource {
        case .session(let id)?:
            if !Self.isSessionID(id) { parts[2] = "-" }
        case .subject(let subject)?, .sessionsOf(let subject)?, .disable(let subject)?, .enable(let subject)?,
            .claims(let subject)?:
            let name = AuditEvent.name(ofSubject: subject)
            if name != subject { parts[2] = name }
        default: break
        }
        return parts.joined(separator: "/")
    }

    private static func isSessionID(_ text: String) -> Bool {
        let digits = text.utf8.dropFirst(4)
        return text.hasPrefix("ses_") && digits.count <= 64
            && digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    private static func outcome(_ status: Int) -> AuditEvent.Outcome {
        switch status {
        case ..<400: .success
        case ..<500: .rejected
        default: .failed
        }
    }

    /// What the body of a request asked for, where its path does not say it.
    ///
    /// It is taken from the response, which names only what was validated.
    private func asked(_ response: LocalResponse) -> [(name: String, value: JSONValue)] {
        let names: [String]
        switch AdminResource(path: request.path) {
        case .drain?, .restore?: names = ["endpoint"]
        case .logLevel?: names = ["level", "seconds"]
        default: return []
        }
        guard response.status == 200, let document = (try? JSON.parse(response.body, limits: Self.limits))?.object
        else { return [] }
        return names.compactMap { name in document[name].map { (name, $0) } }
    }

    /// The name of a certificate's subject: its common name, a host or a URI; otherwise its fingerprint.
    private static func name(_ der: [UInt8]) -> String? {
        guard let certificate = try? ClientCertificate(der: der) else { return nil }
        for kind in [ClientIdentityKind.subjectCN, .sanDNS, .sanURI] {
            // The address of a mailbox is not for the log.
            if let name = try? certificate.identity(kind), !name.utf8.contains(UInt8(ascii: "@")) { return name }
        }
        return "sha256:\(certificate.fingerprint)"
    }
}
