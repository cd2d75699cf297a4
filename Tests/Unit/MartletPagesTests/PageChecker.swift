/// Reads a page as a browser would, and finds what makes it hard to use or unsafe.
struct PageChecker {
    struct Element {
        let name: String
        var attributes: [(name: String, value: String)]
        var text = ""
        /// Names of the elements around it.
        let path: [String]

        subscript(_ name: String) -> String? { attributes.first { $0.name == name }?.value }
    }

    private(set) var errors: [String] = []
    private(set) var elements: [Element] = []
    private static let void: Set = ["meta", "input", "img", "br", "hr", "link", "rect", "path"]

    init(_ page: String) {
        read(Array(page.unicodeScalars))
        checkDocument(page)
        checkNames()
        checkReferences()
        checkURLs()
    }

    func all(_ name: String) -> [Element] { elements.filter { $0.name == name } }

    // MARK: Reading

    /// A strict reading: our pages quote all attributes and close all elements.
    private mutating func read(_ page: [Unicode.Scalar]) {
        var (index, open) = (0, [Int]())
        while index < page.count {
            guard page[index] == "<" else {
                if page[index] == ">" { errors.append("a stray >") }
                for element in open { elements[element].text.unicodeScalars.append(page[index]) }
                index += 1
                continue
            }
            guard let end = page[index...].firstIndex(of: ">") else { return errors.append("a tag without an end") }
            let tag = String(String.UnicodeScalarView(page[(index + 1)..<end]))
            index = end + 1
            if tag.lowercased() == "!doctype html" { continue }
            if tag.hasPrefix("/") {
                guard let last = open.popLast(), elements[last].name == tag.dropFirst() else {
                    return errors.append("</\(tag)> does not match")
                }
                continue
            }
            let element = element(tag, path: open.map { elements[$0].name })
            elements.append(element)
            if !Self.void.contains(element.name) { open.append(elements.count - 1) }
            if element.name == "style" {
                while index < page.count, page[index] != "<" { index += 1 }
            }
        }
        if !open.isEmpty { errors.append("\(open.map { elements[$0].name }) are not closed") }
    }

    private mutating func element(_ tag: String, path: [String]) -> Element {
        let text = tag.hasSuffix("/") ? tag.dropLast() : tag[...]
        let name = String(text.prefix { $0 != " " })
        var (rest, attributes) = (text.dropFirst(name.count), [(name: String, value: String)]())
        if !name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) { errors.append("the element '\(name)'") }
        while true {
            rest = rest.drop { $0 == " " }
            if rest.isEmpty { break }
            let attribute = String(rest.prefix { $0 != "=" && $0 != " " })
            rest = rest.dropFirst(attribute.count)
            var value = ""
            if rest.first == "=" {
                if rest.dropFirst().first != "\"" { errors.append("\(attribute) of \(name) has no quotes") }
                value = String(rest.dropFirst(2).prefix { $0 != "\"" })
                rest = rest.dropFirst(value.count + 3)
            }
            if !attribute.allSatisfy({ $0.isASCII && ($0.isLetter || $0 == "-") }) {
                errors.append("the attribute '\(attribute)'")
            }
            if attributes.contains(where: { $0.name == attribute }) { errors.append("\(name) has \(attribute) twice") }
            attributes.append((attribute, value))
        }
        return Element(name: name, attributes: attributes, path: path)
    }

    // MARK: Checks

    private mutating func checkDocument(_ page: String) {
        if all("h1").count != 1 { errors.append("\(all("h1").count) h1") }
        if all("main").count != 1 { errors.append("no main") }
        if all("html").first?["lang"]?.isEmpty != false { errors.append("no language") }
        if all("title").first?.text.isEmpty != false { errors.append("no title") }
        if !page.hasPrefix("<!doctype html>\n") { errors.append("no doctype") }
        for name in ["script", "iframe", "object", "embed", "base", "link"] where !all(name).isEmpty {
            errors.append("has \(name)")
        }
        if all("style").count != 1 || all("style").first?["nonce"]?.isEmpty != false {
            errors.append("no style with a nonce")
        }
        for element in elements {
            for (name, _) in element.attributes where name == "style" || name.hasPrefix("on") {
                errors.append("\(element.name) has \(name)")
            }
            if element["tabindex"].map({ Int($0) ?? 1 > 0 }) == true { errors.append("a positive tabindex") }
        }
        for (level, last) in zip(headings.dropFirst(), headings) where level > last + 1 {
            errors.append("a heading is skipped")
        }
    }

    private var headings: [Int] { elements.compactMap { ["h1": 1, "h2": 2, "h3": 3][$0.name] } }

    private mutating func checkNames() {
        let labels = Dictionary(grouping: all("label"), by: { $0["for"] ?? "" })
        for input in all("input") where input["type"] != "hidden" {
            let label = input["id"].flatMap { labels[$0]?.first?.text } ?? input["aria-label"]
            if label?.isEmpty != false { errors.append("the input \(input["name"] ?? "") has no label") }
            if input["type"] != "checkbox", input["autocomplete"] == nil {
                errors.append("\(input["name"] ?? "") has no autocomplete")
            }
        }
        for one in elements where one.name == "button" || one.name == "a" {
            let name = one["aria-label"] ?? one.text
            if name.allSatisfy(\.isWhitespace) { errors.append("a \(one.name) without a name") }
            if one.name == "a", one["href"] == nil { errors.append("a link without a target") }
            if one.name == "button", one["type"] != "submit" { errors.append("a button that does not submit") }
        }
        for one in all("img") where one["alt"] == nil { errors.append("an image without alt") }
        for one in all("svg") where one["aria-hidden"] != "true" { errors.append("a drawing that is read out") }
        for one in all("nav") where one["aria-label"]?.isEmpty != false { errors.append("a nav without a name") }
        for one in all("form") where one["method"] != "post" || one["action"] == nil {
            errors.append("a form that does not post")
        }
        if all("form").count != all("input").filter({ $0["name"] == "csrf" && $0["value"] != "" }).count {
            errors.append("a form without its token")
        }
    }

    private mutating func checkReferences() {
        let ids = elements.compactMap { $0["id"] }
        if Set(ids).count != ids.count { errors.append("an id twice: \(ids)") }
        for element in elements {
            for name in ["for", "aria-describedby", "aria-labelledby"] {
                for id in (element[name] ?? "").split(separator: " ") where !ids.contains(String(id)) {
                    errors.append("\(name) names no element: \(id)")
                }
            }
        }
        for one in all("input") where one["aria-invalid"] != nil && one["aria-describedby"] == nil {
            errors.append("an error without a text")
        }
        for one in elements where one["class"]?.split(separator: " ").contains("error") == true && one["id"] == nil {
            errors.append("an error that nothing points to")
        }
    }

    private mutating func checkURLs() {
        for element in elements {
            for name in ["src", "action", "formaction"] {
                if let url = element[name], !url.hasPrefix("/") || url.hasPrefix("//") {
                    errors.append("\(name) leads to \(url)")
                }
            }
            if element.name == "a", let url = element["href"], !element.path.contains("footer"), !url.hasPrefix("/") {
                errors.append("a link to \(url)")
            }
        }
    }
}
