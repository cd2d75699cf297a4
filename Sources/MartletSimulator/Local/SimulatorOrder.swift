private import MartletCore
internal import MartletJSON
internal import MartletProxy

/// What somebody asks a simulator to make, read strictly: unknown, repeated and mistyped members are mistakes.
struct SimulatorOrder {
    /// What is wrong with an order.
    struct Mistake: Error {
        let problem: SimulatorProblem
        /// In one line, for whoever sent it.
        let text: String

        init(_ text: String, _ problem: SimulatorProblem = .invalid) {
            self.problem = problem
            self.text = text
        }

        /// The answer to whoever sent it.
        func answer(to request: LocalRequest) -> LocalResponse {
            .problem(problem, request, text, allow: problem == .methodNotAllowed ? "POST" : nil)
        }
    }

    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: 64 * 1024)

    let object: JSONObject

    /// Reads the body of a request: a POST of a JSON object.
    init(_ request: LocalRequest, members names: [String]) throws(Mistake) {
        guard request.method == "POST" else { throw Mistake("only POST", .methodNotAllowed) }
        guard Self.isJSON(request.field("content-type")) else {
            throw Mistake("the order is JSON: send Content-Type: application/json", .unsupportedMediaType)
        }
        guard request.bodyBytes == request.body.count else { throw Mistake("the order is too large", .tooLarge) }
        try self.init(request.body, members: names)
    }

    /// Reads a JSON object that has no other members than these.
    init(_ body: [UInt8], members names: [String]) throws(Mistake) {
        do throws(JSONError) {
            guard let object = try JSON.parse(body, limits: Self.limits).object else {
                throw JSONError(.jsonUnexpectedByte, at: 0)
            }
            self.object = object
        } catch {
            throw Mistake("the order is no JSON object: \(error)")
        }
        if let stranger = object.members.first(where: { !names.contains($0.name) }) {
            throw Mistake("unknown member '\(stranger.name)'; there is \(names.joined(separator: ", "))")
        }
    }

    /// The media type is compared without its parameters.
    private static func isJSON(_ contentType: String?) -> Bool {
        let type = contentType?.split(separator: ";", maxSplits: 1).first ?? ""
        return type.lowercased().filter { $0 != " " && $0 != "\t" } == "application/json"
    }

    // MARK: Members

    /// A text; `nil` if it is not there.
    func text(_ name: String) throws(Mistake) -> String? {
        guard let value = object[name] else { return nil }
        guard let text = value.string else { throw Mistake("'\(name)' is not a text") }
        return text
    }

    /// A text that must be there and not be empty.
    func requiredText(_ name: String) throws(Mistake) -> String {
        guard let text = try text(name), !text.isEmpty else { throw Mistake("'\(name)' is missing or empty") }
        return text
    }

    /// A boolean; `nil` if it is not there.
    func flag(_ name: String) throws(Mistake) -> Bool? {
        guard let value = object[name] else { return nil }
        guard let flag = value.bool else { throw Mistake("'\(name)' is neither true nor false") }
        return flag
    }

    /// A whole number within bounds; `nil` if it is not there.
    func number(_ name: String, in range: ClosedRange<Int64>, unit: String = "") throws(Mistake) -> Int64? {
        guard let value = object[name] else { return nil }
        guard let number = value.int64, range.contains(number) else {
            throw Mistake(
                "'\(name)' is not a whole number\(unit) from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// An object; `nil` if it is not there.
    func members(_ name: String) throws(Mistake) -> JSONObject? {
        guard let value = object[name] else { return nil }
        guard let members = value.object else { throw Mistake("'\(name)' is not an object") }
        return members
    }
}
