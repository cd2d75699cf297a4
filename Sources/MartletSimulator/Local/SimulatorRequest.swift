internal import MartletJSON
internal import MartletResponder

/// Why a request to a simulator's own endpoints is rejected.
struct RequestError: Error {
    let type: ProblemType
    let message: String
    /// The allowed methods, if another one was used.
    let allow: String?

    init(_ message: String, _ type: ProblemType = .invalid, allow: String? = nil) {
        self.type = type
        self.message = message
        self.allow = allow
    }

    func response(to request: LocalRequest) -> LocalResponse {
        .problem(type, request, message, allow: allow)
    }
}

func handling(
    _ request: LocalRequest, _ body: (LocalRequest) throws(RequestError) -> LocalResponse
) -> LocalResponse {
    do throws(RequestError) { return try body(request) } catch { return error.response(to: request) }
}

/// A request to a simulator's own endpoints, parsed strictly: unknown, repeated and mistyped members are errors.
struct SimulatorRequest {
    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: 64 * 1024)

    let object: JSONObject

    /// Parses the body of a request: a POST of a JSON object.
    init(_ request: LocalRequest, members names: [String]) throws(RequestError) {
        guard request.method == "POST" else {
            throw RequestError("method not allowed: use POST", .methodNotAllowed, allow: "POST")
        }
        guard Self.isJSON(request.field("content-type")) else {
            throw RequestError("unsupported media type: send Content-Type: application/json", .unsupportedMediaType)
        }
        guard request.bodyBytes == request.body.count else { throw RequestError("body too large", .tooLarge) }
        try self.init(request.body, members: names)
    }

    /// Parses a JSON object with no other members than these.
    init(_ body: [UInt8], members names: [String]) throws(RequestError) {
        do throws(JSONError) {
            guard let object = try JSON.parse(body, limits: Self.limits).object else {
                throw JSONError(.jsonUnexpectedByte, at: 0)
            }
            self.object = object
        } catch {
            throw RequestError("the body is not a JSON object: \(error)")
        }
        if let unknown = object.members.first(where: { !names.contains($0.name) }) {
            throw RequestError("unknown member '\(unknown.name)'; expected \(names.joined(separator: ", "))")
        }
    }

    /// The media type is compared without its parameters.
    private static func isJSON(_ contentType: String?) -> Bool {
        let type = contentType?.split(separator: ";", maxSplits: 1).first ?? ""
        return type.lowercased().filter { $0 != " " && $0 != "\t" } == "application/json"
    }

    // MARK: Members

    /// A string; `nil` if absent.
    func text(_ name: String) throws(RequestError) -> String? {
        guard let value = object[name] else { return nil }
        guard let text = value.string else { throw RequestError("'\(name)' is not a string") }
        return text
    }

    /// A string that must be present and not empty.
    func requiredText(_ name: String) throws(RequestError) -> String {
        guard let text = try text(name), !text.isEmpty else { throw RequestError("'\(name)' is missing or empty") }
        return text
    }

    /// A list of strings; `nil` if absent.
    func texts(_ name: String) throws(RequestError) -> [String]? {
        guard let value = object[name] else { return nil }
        let texts = value.array?.compactMap(\.string)
        guard let texts, texts.count == value.array?.count else {
            throw RequestError("'\(name)' is not a list of strings")
        }
        return texts
    }

    /// A boolean; `nil` if absent.
    func flag(_ name: String) throws(RequestError) -> Bool? {
        guard let value = object[name] else { return nil }
        guard let flag = value.bool else { throw RequestError("'\(name)' is not a boolean") }
        return flag
    }

    /// A whole number within bounds; `nil` if absent.
    func number(_ name: String, in range: ClosedRange<Int64>, unit: String = "") throws(RequestError) -> Int64? {
        guard let value = object[name] else { return nil }
        guard let number = value.int64, range.contains(number) else {
            throw RequestError(
                "'\(name)' is not a whole number\(unit) from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// An object; `nil` if absent.
    func members(_ name: String) throws(RequestError) -> JSONObject? {
        guard let value = object[name] else { return nil }
        guard let members = value.object else { throw RequestError("'\(name)' is not an object") }
        return members
    }
}
