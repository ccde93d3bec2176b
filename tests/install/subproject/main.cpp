#include <reprise/reprise.h>

#include <iostream>

int main() { std::cout << reprise::sin(reprise::Array(1.0F)) << "\n"; }
