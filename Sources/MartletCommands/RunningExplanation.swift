internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet explain --admin URL`: the explanation of a running gateway, which knows the sessions of its own memory.
extension ExplainCommand {
    /// A store or an issuer that does not respond is waited for.
    private static let timeout = Duration.seconds(30)
    private static let credentialField = "X-Explain-Authorization"

    func explainAtGateway() throws(StartError) -> ExitCode {
        let (query, credential) = try request()
        let client = AdminClient(try admin.target(), timeout: Self.timeout)
        let response = try client.request("/explain?\(query)", fields: credential.map { [$0] } ?? [])
        let limits = JSONLimits(maximumDepth: 32, maximumBytes: max(response.body.count, 1))
        let document = (try? JSON.parse(response.body, limits: limits))?.object
        guard response.status == 200, let document, let text = document["text"]?.string else {
            let detail = document?["detail"]?.string ?? document?["code"]?.string ?? "not a response of a gateway"
            throw StartError(
                code: "server.refused", message: "status \(response.status): \(TerminalText.escaped(detail))",
                exit: .unavailable)
        }
        Output.line(admin.printsJSON ? response.text : text)
        switch document["decision"]?.object?["outcome"]?.string {
        case "refused": return .rejected
        case "undecidable": return .unavailable
        default: return .ok
        }
    }

    /// The query, and the field with the credential, which is in no URL.
    private func request() throws(StartError) -> (query: String, credential: (name: String, value: String)?) {
        var parameters = [("method", method)]
        if let scheme, let host {
            parameters.append(("url", "\(scheme)://\(host)\(target)"))
        } else {
            parameters.append(("path", target))
            if let host { parameters.append(("host", host)) }
        }
        var credentials: [String] = []
        for line in lines {
            let name = line.prefix { $0 != ":" }
            if name.lowercased() == "authorization" {
                credentials.append(String(line.dropFirst(name.count + 1).drop { $0 == " " }))
            } else {
                parameters.append(("header", line))
            }
        }
        if let tokenPath {
            do throws(ArgumentFileError) {
                let token = try ArgumentFile.read(tokenPath, "the token file")
                credentials.append("Bearer " + String(decoding: token, as: UTF8.self))
            } catch {
                throw StartError(code: "server.token_unreadable", message: error.message, exit: .usage)
            }
        }
        let isHeaderText = credentials.allSatisfy { $0.utf8.allSatisfy { (0x20...0x7E).contains($0) } }
        guard credentials.count < 2, isHeaderText else {
            throw StartError(
                code: "server.token_unreadable", message: "one credential is possible, of visible ASCII characters",
                exit: .usage)
        }
        let query = parameters.map { "\($0.0)=\(AdminRequests.escaped($0.1))" }.joined(separator: "&")
        return (query, credentials.first.map { (Self.credentialField, $0) })
    }
}
