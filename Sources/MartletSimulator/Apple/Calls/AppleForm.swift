private import MartletCore
internal import MartletResponder

/// The parameters of a call: the body is a form, each parameter occurs once, and an empty one is missing.
struct AppleForm {
    private static let maximumBytes = 64 * 1024

    private let values: [String: String]

    /// Parses the body of a call, strictly.
    init(_ request: LocalRequest) throws(AppleAPIError) {
        guard Self.isForm(request) else {
            throw .invalidRequest("The Content-Type is not application/x-www-form-urlencoded.")
        }
        guard let agent = request.field("user-agent"), !agent.isEmpty else {
            throw .invalidRequest("There is no User-Agent.")
        }
        guard request.bodyBytes == request.body.count, request.bodyBytes <= Self.maximumBytes else {
            throw .invalidRequest("The body is too large.")
        }
        try self.init(encoded: request.body)
    }

    /// Parses the text of a form or a query.
    init(encoded text: [UInt8]) throws(AppleAPIError) {
        var decoder = FormDecoder(text)
        let pairs: [(name: [UInt8], value: Secret)]
        do throws(FormDecoder.FormError) { pairs = try decoder.pairs() } catch {
            throw .invalidRequest("The form cannot be decoded.")
        }
        var values: [String: String] = [:]
        for pair in pairs {
            // Other strings might be equal although their bytes differ.
            guard pair.name.allSatisfy({ $0 < 0x80 }) else { throw .invalidRequest("A parameter is not supported.") }
            let name = String(decoding: pair.name, as: UTF8.self)
            guard values[name] == nil else { throw .invalidRequest("A parameter is repeated.") }
            values[name] = pair.value.withBytes { String(decoding: $0, as: UTF8.self) }
        }
        self.values = values
    }

    private static func isForm(_ request: LocalRequest) -> Bool {
        let types = request.fields.filter { $0.name.lowercased() == "content-type" }
        guard types.count == 1, let type = types.first?.value.split(separator: ";", maxSplits: 1).first else {
            return false
        }
        return type.lowercased().filter { $0 != " " && $0 != "\t" } == "application/x-www-form-urlencoded"
    }

    /// The value of a parameter; `nil` if it is missing or empty.
    subscript(name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

    func required(_ name: String) throws(AppleAPIError) -> String {
        guard let value = self[name] else { throw .invalidRequest("\(name) is missing.") }
        return value
    }

    /// Rejects parameters with other names.
    func allow(_ names: [String]) throws(AppleAPIError) {
        guard let other = values.keys.filter({ !names.contains($0) }).min() else { return }
        throw .invalidRequest("\(other.prefix(64)) is not supported.")
    }
}
