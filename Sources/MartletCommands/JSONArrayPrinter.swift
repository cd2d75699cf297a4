internal import MartletJSON

/// Prints a JSON array element by element, so that long lists need no memory.
struct JSONArrayPrinter {
    private var isEmpty = true

    mutating func print(_ element: JSONObject) {
        Output.line((isEmpty ? "[\n" : ",") + String(decoding: JSON.write(element), as: UTF8.self))
        isEmpty = false
    }

    func finish() { Output.line(isEmpty ? "[]" : "]") }
}
