internal import MartletJSON

/// Prints a JSON array element by element, so that long lists need no memory.
struct JSONArrayPrinter {
    private var isEmpty = true

    /// Prints one element.
    mutating func print(_ element: JSONObject) {
        Output.line((isEmpty ? "[\n" : ",") + String(decoding: JSON.write(element), as: UTF8.self))
        isEmpty = false
    }

    /// Prints the end.
    func finish() { Output.line(isEmpty ? "[]" : "]") }
}
