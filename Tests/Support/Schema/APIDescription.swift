package import MartletJSON

/// An OpenAPI document that responses are checked against.
package struct APIDescription: Sendable {
    private let document: JSONObject
    private let schema: JSONSchema

    package init(_ document: JSONObject) {
        self.document = document
        schema = JSONSchema(document: document)
    }

    /// The described part of a response.
    package struct Response: Sendable {
        package let status: Int
        package let fields: [(name: String, value: String)]
        /// `nil` if only the head is known.
        package let body: [UInt8]?

        package init(status: Int, fields: [(name: String, value: String)], body: [UInt8]?) {
            self.status = status
            self.fields = fields
            self.body = body
        }

        fileprivate func field(_ name: String) -> String? {
            fields.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    /// Every operation, as `POST /auth/nonce` with its path parameters in braces.
    package var operations: [(method: String, path: String, operation: JSONObject)] {
        (document["paths"]?.object?.members ?? []).flatMap { path in
            let item = path.value.object ?? [:]
            let servers = (item["servers"] ?? document["servers"])?.array
            let base = servers?.first?.object?["url"]?.string ?? ""
            return item.members.filter { ["get", "post", "put", "patch", "delete"].contains($0.name) }.map { member in
                (member.name.uppercased(), base == "/" ? path.name : base + path.name, member.value.object ?? [:])
            }
        }
    }

    /// The differences between a response and its description; empty if the method is not described there.
    package func findings(_ method: String, _ path: String, _ response: Response) -> [String] {
        let method = method == "HEAD" ? "GET" : method
        guard let operation = operations.first(where: { $0.method == method && Self.fits($0.path, path) })?.operation
        else { return [] }
        let name = "\(method) \(path) \(response.status)"
        guard let reference = operation["responses"]?.object?[String(response.status)]?.object,
            let described = schema.resolve(reference)
        else { return ["\(name): not described"] }
        return (headFindings(response, described) + bodyFindings(response, described)).map { "\(name): \($0)" }
    }

    private func headFindings(_ response: Response, _ described: JSONObject) -> [String] {
        (described["headers"]?.object?.members ?? []).flatMap { header -> [String] in
            guard let value = response.field(header.name) else {
                return header.value.object?["required"] == true ? ["no \(header.name)"] : []
            }
            let rule = header.value.object?["schema"]?.object ?? [:]
            let number = Int64(value).map { JSONValue.integer($0) }
            let parsed = rule["type"]?.string == "integer" ? number ?? .null : .string(value)
            return schema.findings(parsed, rule, at: header.name)
        }
    }

    private func bodyFindings(_ response: Response, _ described: JSONObject) -> [String] {
        guard let body = response.body else { return [] }
        guard let content = described["content"]?.object?.members.first else {
            return body.isEmpty ? [] : ["a body that is not described"]
        }
        guard response.field("Content-Type") == content.name else { return ["not \(content.name)"] }
        let limits = JSONLimits(maximumDepth: 32, maximumBytes: 1 << 20)
        guard let value = try? JSON.parse(body, limits: limits) else { return ["not JSON"] }
        return schema.findings(value, content.value.object?["schema"]?.object ?? [:])
    }

    private static func fits(_ template: String, _ path: String) -> Bool {
        func segments(_ text: String) -> [Substring] { text.split(separator: "/", omittingEmptySubsequences: false) }
        let (wanted, given) = (segments(template), segments(path))
        return wanted.count == given.count
            && zip(wanted, given).allSatisfy { $0.hasPrefix("{") && $0.hasSuffix("}") || $0 == $1 }
    }
}
